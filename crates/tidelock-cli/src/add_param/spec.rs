//! `top_k:i32=0`, `noise:tensor<f32>[num_rows, width]`, `USE_FP64:bool=false`: a parameter in one word.

use clap::Args;

use crate::words;

/// What is said of it beside its name and type.
#[derive(Args, Clone, Debug, Default)]
pub struct Flags {
    /// What it means; without it, `TODO`, which a build refuses
    #[arg(long, value_name = "TEXT")]
    pub doc: Option<String>,
    /// What the kernel calls it, where that differs
    #[arg(long = "as", value_name = "NAME")]
    pub kernel_name: Option<String>,
    /// What it follows from: dim, stride(TENSOR), present(TENSOR), absent(TENSOR) or dtype(TENSOR)
    #[arg(long, value_name = "SOURCE")]
    pub from: Option<String>,
    /// What is done with a tensor
    #[arg(long, value_parser = ["read", "write", "update"], default_value = "read", hide_default_value = true)]
    pub access: String,
    /// A tensor that callers may leave out
    #[arg(long)]
    pub optional: bool,
    /// A constant that changes speed and never results
    #[arg(long)]
    pub tuning: bool,
}

/// A parameter or constant to add.
#[derive(Clone, Debug, PartialEq)]
pub struct Spec {
    pub name: String,
    kind: Kind,
}

#[derive(Clone, Debug, PartialEq)]
enum Kind {
    Tensor { element: String, shape: String },
    Scalar { element: String, default: Option<String> },
    Constant { dtype: String, value: Option<String> },
}

const FORMS: &str = "`NAME:TYPE[=DEFAULT]`, `NAME:tensor<TYPE>[SHAPE]` or `CONSTANT:TYPE[=VALUE]`";

impl Spec {
    /// Reads what was asked for; names and types are for the registry's reader to judge.
    pub fn read(text: &str) -> Result<Spec, String> {
        let expected = |got: &str| format!("expected {FORMS}, got {got}");
        let (name, kind) = text.split_once(':').ok_or_else(|| expected("no `:`"))?;
        let (kind, value) = match kind.split_once('=') {
            Some((kind, value)) => (kind.trim(), Some(value.trim().to_string())),
            None => (kind.trim(), None),
        };
        let name = name.trim().to_string();
        if name.is_empty() || kind.is_empty() {
            return Err(expected(if name.is_empty() { "no name" } else { "no type" }));
        }
        if value.as_ref().is_some_and(String::is_empty) {
            return Err(expected("nothing after `=`"));
        }
        let is_constant = name.chars().any(|c| c.is_ascii_uppercase()) && !name.chars().any(|c| c.is_ascii_lowercase());
        let kind = match kind.strip_prefix("tensor") {
            Some(rest) => {
                let parts = rest.trim().strip_prefix('<').and_then(|rest| rest.split_once('>'));
                let (element, shape) = parts.ok_or_else(|| expected("a tensor without `<TYPE>`"))?;
                let shape = shape.trim();
                if !(shape.starts_with('[') && shape.ends_with(']')) {
                    return Err(expected("a tensor without `[SHAPE]`"));
                }
                if is_constant || value.is_some() {
                    return Err("a tensor has no value, and its name is in snake case".to_string());
                }
                let extents: Vec<&str> = shape[1..shape.len() - 1].split(',').map(str::trim).collect();
                Kind::Tensor { element: element.trim().to_string(), shape: format!("[{}]", extents.join(", ")) }
            }
            None if is_constant => Kind::Constant { dtype: kind.to_string(), value },
            None => Kind::Scalar { element: kind.to_string(), default: value },
        };
        Ok(Spec { name, kind })
    }

    /// Refuses flags that do not go with it.
    pub fn check(&self, flags: &Flags) -> Result<(), String> {
        let is_tensor = matches!(self.kind, Kind::Tensor { .. });
        let has_value =
            matches!(&self.kind, Kind::Scalar { default: Some(_), .. } | Kind::Constant { value: Some(_), .. });
        match flags {
            Flags { access, .. } if !is_tensor && access != "read" => Err("--access: only a tensor has this".into()),
            Flags { optional: true, .. } if !is_tensor => {
                Err("--optional: only a tensor has this; a scalar can have a default".into())
            }
            Flags { tuning: true, .. } if !self.is_constant() => Err("--tuning: only a constant has this".into()),
            Flags { from: Some(_), .. } if is_tensor => Err("--from: a tensor is never derived".into()),
            Flags { from: Some(_), .. } if has_value => Err("--from: what is derived has no value of its own".into()),
            _ => Ok(()),
        }
    }

    /// Whether its value is left to say.
    pub fn is_open(&self, flags: &Flags) -> bool {
        matches!(self.kind, Kind::Constant { value: None, .. }) && flags.from.is_none()
    }

    pub fn is_constant(&self) -> bool {
        matches!(self.kind, Kind::Constant { .. })
    }

    /// Its name in Rust.
    pub fn field(&self) -> String {
        self.name.to_lowercase()
    }

    /// Whether a caller that does not know it no longer compiles.
    pub fn breaks_callers(&self, flags: &Flags) -> bool {
        match &self.kind {
            Kind::Tensor { .. } => true,
            Kind::Scalar { default, .. } => default.is_none() && flags.from.is_none(),
            Kind::Constant { .. } => false,
        }
    }

    /// The keys and values of its entry. What is not said is `TODO`; where `said`, something that can be checked instead.
    pub fn pairs(&self, flags: &Flags, said: bool) -> Vec<(&'static str, String)> {
        let todo = |stand_in: &str| if said { stand_in.to_string() } else { "TODO".to_string() };
        let from = flags.from.iter().map(|from| ("from", words::yaml(from)));
        let mut pairs = match &self.kind {
            Kind::Tensor { element, shape } => vec![("tensor", element.clone()), ("shape", shape.clone())],
            Kind::Scalar { element, default } => {
                let default = default.iter().map(|value| ("default", value.clone()));
                [("scalar", element.clone())].into_iter().chain(from).chain(default).collect()
            }
            Kind::Constant { dtype, .. } if flags.from.is_some() => {
                [("type", dtype.clone())].into_iter().chain(from).collect()
            }
            Kind::Constant { dtype, value } => {
                let stand_in = if dtype == "bool" { "false" } else { "1" };
                vec![("type", dtype.clone()), ("value", value.clone().unwrap_or_else(|| todo(stand_in)))]
            }
        };
        if flags.access != "read" {
            pairs.push(("access", flags.access.clone()));
        }
        if flags.optional {
            pairs.push(("optional", "true".to_string()));
        }
        if flags.tuning {
            pairs.push(("tuning", "true".to_string()));
        }
        pairs.extend(flags.kernel_name.iter().map(|name| ("as", words::yaml(name))));
        pairs.push(("doc", flags.doc.as_deref().map_or_else(|| todo("To be said."), words::yaml)));
        pairs
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms() {
        let shown = |text: &str| {
            let spec = Spec::read(text)?;
            let flags = Flags { doc: Some("x".into()), access: "read".into(), ..Flags::default() };
            let pairs = spec.pairs(&flags, false);
            let pairs: Vec<String> = pairs.iter().map(|(key, value)| format!("{key}: {value}")).collect();
            Ok::<_, String>(format!("{} {}", spec.name, pairs.join(", ")))
        };
        assert_eq!(shown("top_k:i32=0").unwrap(), "top_k scalar: i32, default: 0, doc: x");
        assert_eq!(
            shown("noise : tensor<f32>[num_rows, n + 1]").unwrap(),
            "noise tensor: f32, shape: [num_rows, n + 1], doc: x"
        );
        assert_eq!(shown("USE_FP64:bool=false").unwrap(), "USE_FP64 type: bool, value: false, doc: x");
        assert_eq!(shown("USE_FP64:bool").unwrap(), "USE_FP64 type: bool, value: TODO, doc: x");
        for (text, got) in [
            ("top_k", "no `:`"),
            (":i32", "no name"),
            ("a:", "no type"),
            ("a:i32=", "nothing after `=`"),
            ("a:tensor[n]", "a tensor without `<TYPE>`"),
            ("a:tensor<f32>", "a tensor without `[SHAPE]`"),
        ] {
            assert!(shown(text).unwrap_err().ends_with(&format!("got {got}")), "{text}: {:?}", shown(text));
        }
        assert!(shown("a:tensor<f32>[n]=0").is_err());
    }
}
