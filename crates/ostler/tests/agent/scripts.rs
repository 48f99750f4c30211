//! Random fault scripts with real processes: after each step, what the kubelet is told equals a
//! slow and simple model of the node, which shares nothing with the product; and on the way there
//! nothing was told of a card that the step does not concern.

mod model;
mod play;

use std::sync::Arc;

use tokio::{sync::Semaphore, task::JoinSet};

use self::{
    model::{Dice, Step},
    play::Play,
};
use crate::rig::{DGX, MIG};

/// How many scripts are played, how many at a time, and how long each is.
const SCRIPTS: u64 = 50;
const AT_A_TIME: usize = 8;
const STEPS: usize = 7;

/// Scripts that once went wrong, with the node that they are played on.
const REGRESSIONS: [(&str, &[Step]); 1] = [
    // The next agent gave the card a second grace.
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

/// Plays the script of a seed; what went wrong.
async fn by_chance(seed: u64) -> Result<(), String> {
    let mut dice = Dice::new(seed);
    let profile = if seed % 5 < 2 { MIG } else { DGX };
    let mut play = Play::start(&seed.to_string(), profile).await;
    for _ in 0..STEPS {
        play.roll(&mut dice).await?;
    }
    play.end()
}

/// Plays a script that went wrong once; what went wrong.
async fn again(profile: &str, steps: &[Step]) -> Result<(), String> {
    let mut play = Play::start("of old", profile).await;
    for step in steps {
        play.step(*step).await?;
    }
    play.end()
}
