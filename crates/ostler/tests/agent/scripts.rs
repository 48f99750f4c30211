//! Random fault scripts with real processes. After each step the kubelet's devices equal those of a
//! slow and simple model of the node, which shares no code with the product. During the step, the
//! health of cards that it does not concern never changes.

mod model;
mod play;

use std::sync::Arc;

use tokio::{sync::Semaphore, task::JoinSet};

use self::{
    model::{Dice, Step},
    play::Play,
};
use crate::rig::{DGX, MIG};

/// Number of scripts, number of scripts at the same time, and number of steps of each.
const SCRIPTS: u64 = 50;
const AT_A_TIME: usize = 8;
const STEPS: usize = 7;

/// Scripts that failed once, with the profile of their node.
const REGRESSIONS: [(&str, &[Step]); 1] = [
    // The next agent gave the card a second grace period.
    (DGX, &[Step::Hang(3), Step::RestartAgent]),
];

#[tokio::test]
async fn what_the_kubelet_is_told_is_what_a_simple_model_says() {
    let turns = Arc::new(Semaphore::new(AT_A_TIME));
    let mut playing = JoinSet::new();
    for seed in 0..SCRIPTS {
        let turns = Arc::clone(&turns);
        playing.spawn(async move {
            let _turn = turns.acquire_owned().await.unwrap();
            by_chance(seed).await
        });
    }
    for (profile, steps) in REGRESSIONS {
        playing.spawn(again(profile, steps));
    }
    let mut wrong = Vec::new();
    while let Some(ended) = playing.join_next().await {
        if let Err(story) = ended.unwrap() {
            wrong.push(story);
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Runs the script of a seed. The error describes the failure.
async fn by_chance(seed: u64) -> Result<(), String> {
    let mut dice = Dice::new(seed);
    let profile = if seed % 5 < 2 { MIG } else { DGX };
    let mut play = Play::start(&seed.to_string(), profile).await;
    for _ in 0..STEPS {
        play.roll(&mut dice).await?;
    }
    play.end()
}

/// Runs a script that failed once. The error describes the failure.
async fn again(profile: &str, steps: &[Step]) -> Result<(), String> {
    let mut play = Play::start("of old", profile).await;
    for step in steps {
        play.step(*step).await?;
    }
    play.end()
}
