//! One way to call a kernel: what is chosen, how large, how laid out, and what kind of values.
//!
//! A case is its name. [`Case::id`] says all of it, the values are generated from it, and [`Case::parse`] makes the case
//! again, so a difference that was found anywhere can be run anywhere else from one line of text.

use tidelock::kernel::{Param, ParamKind, Presence, ScalarSource};
use tidelock::{DType, Kernel};

use crate::error::{Error, Result};
use crate::values;

/// How tensors lie in their buffers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Layout {
    /// From the start of the buffer, rows one after the other.
    Packed,
    /// Rows an odd number of elements apart, where the kernel takes a row stride.
    Padded,
    /// Rows a multiple of 16 elements apart, and further than they are long.
    PaddedBy16,
    /// Every tensor begins one element into its buffer.
    Misaligned,
}

/// Which values tensors hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Values {
    /// What their domains promise.
    Declared,
    /// A part is replaced by anything that the type can hold.
    Hostile,
}

impl Layout {
    const ALL: [(Layout, &str); 4] = [
        (Layout::Packed, "packed"),
        (Layout::Padded, "padded"),
        (Layout::PaddedBy16, "padded16"),
        (Layout::Misaligned, "misaligned"),
    ];
}

impl Values {
    const ALL: [(Values, &str); 2] = [(Values::Declared, "declared"), (Values::Hostile, "hostile")];
}

/// One way to call a kernel.
#[derive(Clone, Debug)]
pub struct Case {
    /// Which kernel.
    pub kernel: &'static Kernel,
    /// The type of each type variable.
    pub types: Vec<DType>,
    /// Which parameters are given; only optional tensors can be left out.
    pub given: Vec<bool>,
    /// The value of each dimension.
    pub dims: Vec<i64>,
    /// How tensors lie in their buffers.
    pub layout: Layout,
    /// Which values they hold.
    pub values: Values,
    /// Tells apart cases that are otherwise alike; 0 in the standard set.
    pub seed: u64,
}

impl Case {
    /// The case's name among those of its kernel, such as
    /// `f64-no_draft_probs/num_tokens=3,vocab_size=1000,batch_size=2/padded/hostile`. A seed other than 0 ends it.
    pub fn id(&self) -> String {
        let absent = optional(self.kernel).filter(|&param| !self.given[param]);
        let absent = absent.map(|param| format!("no_{}", self.kernel.params[param].name));
        let choices: Vec<_> = self.types.iter().map(|dtype| dtype.name().to_string()).chain(absent).collect();
        let dims: Vec<_> =
            self.kernel.dims.iter().zip(&self.dims).map(|(dim, n)| format!("{}={n}", dim.name)).collect();
        let mut id = [or(choices.join("-"), "all"), or(dims.join(","), "none")].join("/");
        for name in [name(&Layout::ALL, self.layout), name(&Values::ALL, self.values)] {
            id = id + "/" + name;
        }
        if self.seed == 0 { id } else { format!("{id}/{}", self.seed) }
    }

    /// The case of this name.
    ///
    /// # Errors
    /// Where `kernel` has no case of this name.
    pub fn parse(kernel: &'static Kernel, id: &str) -> Result<Case> {
        let parts: Vec<&str> = id.split('/').collect();
        let (Some(&[choices, dims, layout, values]), seed) = (parts.first_chunk::<4>(), parts.get(4)) else {
            return Err(Error::new(format!(
                "case `{id}`: expected choices/sizes/layout/values, then a seed or nothing"
            )));
        };
        let choices: Vec<&str> = choices.split('-').filter(|&choice| choice != "all").collect();
        let types = kernel.types.iter().enumerate().map(|(index, variable)| {
            let name = choices.get(index).copied().unwrap_or_default();
            variable.choices.iter().copied().find(|choice| choice.name() == name)
        });
        let absent = |param: usize| choices.contains(&format!("no_{}", kernel.params[param].name).as_str());
        let dims = kernel.dims.iter().map(|dim| {
            let value = dims.split(',').find_map(|entry| entry.strip_prefix(dim.name)?.strip_prefix('='));
            value?.parse().ok()
        });
        let case = || {
            Some(Case {
                kernel,
                types: types.collect::<Option<_>>()?,
                given: given(kernel, |param| !absent(param)),
                dims: dims.collect::<Option<_>>()?,
                layout: Layout::ALL.iter().find(|(_, name)| *name == layout)?.0,
                values: Values::ALL.iter().find(|(_, name)| *name == values)?.0,
                seed: seed.map_or(Some(0), |seed| seed.parse().ok())?,
            })
        };
        match case() {
            // What was misspelled or left over would show here.
            Some(case) if case.id() == id && case.is_possible() => Ok(case),
            _ => Err(Error::new(format!("kernel `{}` has no case `{id}`", kernel.name))),
        }
    }

    /// Number of the variant that the GPU arm runs, in the order of [`Kernel::variants`].
    pub fn variant_index(&self) -> Option<usize> {
        self.kernel.variant_index(&self.types, |param| self.given[param], self.is_aligned())
    }

    /// The variant that the GPU arm runs; `None` where it has not been compiled.
    pub fn variant(&self) -> Option<&'static tidelock::kernel::Variant> {
        self.kernel.variants.get(self.variant_index()?)
    }

    /// Whether everything is divisible by 16 that the aligned variants promise. Buffers themselves begin at multiples of
    /// 256 on a GPU.
    fn is_aligned(&self) -> bool {
        self.kernel.params.iter().enumerate().filter(|(_, param)| param.divisible_by_16).all(|(index, param)| {
            let value = match param.kind {
                ParamKind::Tensor { .. } => self.placement(index).map(|placement| placement.lead as i64),
                ParamKind::Scalar { source: ScalarSource::Dim(dim), .. } => Some(self.dims[dim]),
                ParamKind::Scalar { source: ScalarSource::Stride(tensor), .. } => {
                    self.placement(tensor).map(|placement| placement.row_stride as i64)
                }
                ParamKind::Struct { .. } => None,
                ParamKind::Scalar { .. } => values::scalar(self, index).map(|scalar| scalar.as_integer().unwrap_or(1)),
            };
            // What is absent promises nothing; an address one element further is never a multiple of 16.
            value.unwrap_or(0) % 16 == 0
        })
    }
}

/// The optional tensors that a caller chooses to give, in parameter order. What one arm refuses cannot be compared.
pub(crate) fn optional(kernel: &'static Kernel) -> impl Iterator<Item = usize> {
    kernel.params.iter().enumerate().filter(|(_, param)| is_chosen(param)).map(|(index, _)| index)
}

fn is_chosen(param: &Param) -> bool {
    matches!(param.kind, ParamKind::Tensor { presence: Presence::Optional, .. }) && param.refused.is_none()
}

/// Which parameters are given where `choose` answers for the optional ones.
pub(crate) fn given(kernel: &Kernel, choose: impl Fn(usize) -> bool) -> Vec<bool> {
    let given = |index: usize| match kernel.params[index].kind {
        ParamKind::Tensor { presence: Presence::Optional, .. } => is_chosen(&kernel.params[index]) && choose(index),
        ParamKind::Tensor { presence: Presence::With(other), .. } => is_chosen(&kernel.params[other]) && choose(other),
        _ => true,
    };
    (0..kernel.params.len()).map(given).collect()
}

fn name<T: PartialEq>(all: &[(T, &'static str)], value: T) -> &'static str {
    all.iter().find(|(other, _)| *other == value).map_or("", |(_, name)| name)
}

fn or(text: String, default: &str) -> String {
    if text.is_empty() { default.into() } else { text }
}
