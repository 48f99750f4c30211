//! Parser of the command line, as Go's `flag` parses it, and of variables, as urfave/cli does.

use super::{
    FLAGS, FlagError, FlagKind, FlagSpec, FlagValue, GivenFlags, GivenValue, Invocation, find_spec,
};
use crate::ValueOrigin;

/// Switch of urfave/cli itself.
#[derive(Clone, Copy, PartialEq, Eq)]
enum BuiltinSwitch {
    Help,
    Version,
}

struct CommandLine<'a, S> {
    args: &'a [S],
    flags: GivenFlags,
    /// Each given flag: its main name, and the name that was used for it.
    names: Vec<(&'static str, &'static str)>,
    own: Vec<BuiltinSwitch>,
}

pub(super) fn parse_command_line<S: AsRef<str>>(
    args: &[S],
    env: &dyn Fn(&str) -> Option<String>,
) -> Result<Invocation, FlagError> {
    let mut flags = GivenFlags::default();
    for spec in FLAGS {
        if let Some(given) = read_variable(spec, env)? {
            flags.given.insert(spec.name, given);
        }
    }
    flags.disable_xids = env("DP_DISABLE_HEALTHCHECKS");
    flags.enable_xids = env("DP_ENABLE_HEALTHCHECKS");
    let mut line = CommandLine {
        args,
        flags,
        names: Vec::new(),
        own: Vec::new(),
    };
    let rest = line.read_args()?;
    // urfave/cli adds a command `help` with the alias `h` to every program.
    if matches!(rest.first().map(AsRef::as_ref), Some("help" | "h")) {
        line.own.push(BuiltinSwitch::Help);
    }
    if line.own.contains(&BuiltinSwitch::Help) {
        return Ok(Invocation::Help);
    }
    if line.own.contains(&BuiltinSwitch::Version) {
        return Ok(Invocation::Version);
    }
    if let Some(first) = rest.first() {
        let first = first.as_ref();
        let message = format!("`{first}` and what follows on the command line is not read");
        let help = "flags come first; a bool is written --name=false";
        line.flags.add_warning(ValueOrigin::Default, message, help);
    }
    Ok(Invocation::Run(line.flags))
}

/// Reads the value of a flag from the first of its variables that exists, even if it is empty.
fn read_variable(
    spec: &FlagSpec,
    env: &dyn Fn(&str) -> Option<String>,
) -> Result<Option<GivenValue>, FlagError> {
    let mut found = spec.env.iter().filter_map(|name| Some((name, env(name)?)));
    let Some((name, text)) = found.next() else {
        return Ok(None);
    };
    let origin = ValueOrigin::of_variable(*name);
    // urfave/cli v2 (flag_bool.go, flag_int_slice.go, Apply): an empty variable sets a bool to
    // false and a text to the empty text, and leaves a list of numbers as it is.
    let value = match (spec.kind, text.as_str()) {
        (FlagKind::Bool, "") => FlagValue::Bool(false),
        (FlagKind::Ints, "") => return Ok(None),
        _ => parse_flag_value(spec, &text, &origin)?,
    };
    Ok(Some(GivenValue { value, origin }))
}

// === impl CommandLine ===

impl<'a, S: AsRef<str>> CommandLine<'a, S> {
    /// Reads flags up to the first word that is not one. Returns that word and the words after it.
    fn read_args(&mut self) -> Result<&'a [S], FlagError> {
        let mut args = self.args;
        while let Some((first, rest)) = args.split_first() {
            let arg = first.as_ref();
            if arg.len() < 2 || !arg.starts_with('-') {
                break;
            }
            args = rest;
            if arg == "--" {
                break;
            }
            let text = arg.strip_prefix("--").or(arg.strip_prefix('-'));
            let text = text.unwrap_or_default();
            if text.is_empty() || text.starts_with(['-', '=']) {
                let text = arg.to_owned();
                return Err(FlagError::Syntax { text });
            }
            let (name, inline) = match text.split_once('=') {
                Some((name, value)) => (name, Some(value)),
                None => (text, None),
            };
            if self.read_builtin(name, inline, arg)? {
                continue;
            }
            // Go's `flag` takes a bool without a value for true, and never the next word as its
            // value (flag.go, parseOne).
            let spec = find_known_flag(name)?;
            let flag = format!("--{name}");
            let text = match (inline, spec.kind) {
                (Some(value), _) => value,
                (None, FlagKind::Bool) => "true",
                (None, _) => {
                    let (next, rest) = args.split_first().ok_or(FlagError::NoValue { flag })?;
                    args = rest;
                    next.as_ref()
                }
            };
            self.set_flag(spec, name, text)?;
        }
        Ok(args)
    }

    /// Reads `--help` and `--version`. Returns true if the flag is one of them.
    fn read_builtin(
        &mut self,
        name: &str,
        inline: Option<&str>,
        arg: &str,
    ) -> Result<bool, FlagError> {
        let own = match name {
            "help" | "h" => BuiltinSwitch::Help,
            "version" | "v" => BuiltinSwitch::Version,
            _ => return Ok(false),
        };
        let origin = ValueOrigin::Flag {
            name: arg.split('=').next().unwrap_or_default().to_owned(),
        };
        if parse_go_bool(inline.unwrap_or("true"), &origin)? {
            self.own.push(own);
        }
        Ok(true)
    }

    fn set_flag(
        &mut self,
        spec: &'static FlagSpec,
        name: &str,
        text: &str,
    ) -> Result<(), FlagError> {
        let name = if name == spec.name {
            spec.name
        } else {
            spec.alias.unwrap_or(spec.name)
        };
        let earlier = self.names.iter().find(|(flag, _)| *flag == spec.name);
        if let Some((_, first)) = earlier.filter(|(_, by)| *by != name) {
            return Err(FlagError::TwoForms {
                first,
                second: name,
            });
        }
        let again = earlier.is_some();
        self.names.push((spec.name, name));
        let origin = ValueOrigin::of_flag(name);
        let mut value = parse_flag_value(spec, text, &origin)?;
        // A list that is given again grows; one from a variable is replaced (urfave/cli v2,
        // flag_int_slice.go, Apply and Set).
        if again && let Some(before) = self.flags.given.remove(spec.name) {
            match (&mut value, before.value) {
                (FlagValue::Texts(new), FlagValue::Texts(old)) => drop(new.splice(0..0, old)),
                (FlagValue::Ints(new), FlagValue::Ints(old)) => drop(new.splice(0..0, old)),
                _ => {}
            }
        }
        self.flags
            .given
            .insert(spec.name, GivenValue { value, origin });
        Ok(())
    }
}

fn find_known_flag(name: &str) -> Result<&'static FlagSpec, FlagError> {
    find_spec(name).ok_or_else(|| {
        let names = FLAGS.iter().flat_map(|spec| [Some(spec.name), spec.alias]);
        let names: Vec<&str> = names.flatten().collect();
        let help = match crate::source::nearest(name, &names) {
            Some(near) => format!("did you mean --{near}?"),
            None => "--help lists all flags".to_owned(),
        };
        FlagError::Unknown {
            flag: format!("--{name}"),
            help,
        }
    })
}

fn parse_flag_value(
    spec: &FlagSpec,
    text: &str,
    origin: &ValueOrigin,
) -> Result<FlagValue, FlagError> {
    let parts = || text.split(',').map(str::trim);
    Ok(match spec.kind {
        FlagKind::Text => FlagValue::Text(text.to_owned()),
        FlagKind::Bool => FlagValue::Bool(parse_go_bool(text, origin)?),
        FlagKind::Texts => FlagValue::Texts(parts().map(str::to_owned).collect()),
        FlagKind::Ints => {
            let int = |part| integer(part, origin);
            FlagValue::Ints(parts().map(int).collect::<Result<_, _>>()?)
        }
    })
}

/// Parses a bool as Go's `strconv.ParseBool` does.
fn parse_go_bool(text: &str, origin: &ValueOrigin) -> Result<bool, FlagError> {
    match text {
        "1" | "t" | "T" | "TRUE" | "true" | "True" => Ok(true),
        "0" | "f" | "F" | "FALSE" | "false" | "False" => Ok(false),
        _ => Err(FlagError::BadValue {
            origin: origin.clone(),
            value: text.to_owned(),
            expected: "a bool; write true or false",
        }),
    }
}

/// Parses a number as Go's `strconv.ParseInt` does with base 0: decimal, `0x`, `0o`, `0b`, and
/// octal with a leading `0`.
fn integer(text: &str, origin: &ValueOrigin) -> Result<i64, FlagError> {
    let (sign, digits) = match text.strip_prefix('-') {
        Some(digits) => ("-", digits),
        None => ("", text.strip_prefix('+').unwrap_or(text)),
    };
    let lower = digits.to_ascii_lowercase();
    let (radix, digits) = match lower.as_bytes() {
        [b'0', b'x', ..] => (16, &lower[2..]),
        [b'0', b'o', ..] => (8, &lower[2..]),
        [b'0', b'b', ..] => (2, &lower[2..]),
        [b'0', _, ..] => (8, &lower[1..]),
        _ => (10, lower.as_str()),
    };
    // Rust would take a second sign here, as in `0x-1`.
    let plain = digits.starts_with(|c: char| c.is_ascii_alphanumeric());
    let number = i64::from_str_radix(&format!("{sign}{digits}"), radix).ok();
    number.filter(|_| plain).ok_or_else(|| FlagError::BadValue {
        origin: origin.clone(),
        value: text.to_owned(),
        expected: "a whole number",
    })
}
