//! The argument struct: what a caller writes, and the call that runs it on a device.

use proc_macro2::TokenStream;
use quote::quote;

use super::{Linked, types};
use crate::model::{Access, Arm, Domain, Kernel, Param, ParamKind, Presence, ScalarSource, Tensor};
use crate::names;

pub fn emit(linked: &Linked<'_>) -> TokenStream {
    let kernel = linked.kernel;
    let (name, bounds, generics) = (names::arguments(kernel), types::bounds(kernel), types::generics(kernel));
    let (declared, named) = (generics.declared, generics.named);
    let fields =
        kernel.params.iter().zip(&linked.param_lines).filter(|(param, _)| is_field(param)).map(|(param, line)| {
            let (field, ty) = (names::field(&param.name.value), field_type(kernel, param));
            let doc = document(param, linked.signature.0, *line);
            quote!(#[doc = #doc] pub #field: #ty)
        });
    let doc = format!("{}\n\nDeclared in `{}:{}`.", kernel.doc, linked.signature.0, linked.signature.1);
    let calls = if has_defaults(kernel) { with_defaults(kernel) } else { launch(kernel) };
    quote! {
        #bounds

        #[doc = #doc]
        pub struct #name<'a, #declared> { #(#fields),* }

        impl<'a, #declared> #name<'a, #named> { #calls }
    }
}

/// What the caller must write.
fn is_field(param: &Param) -> bool {
    match &param.kind {
        ParamKind::Tensor(_) | ParamKind::Struct(_) => true,
        ParamKind::Scalar(scalar) => scalar.source == ScalarSource::Caller,
    }
}

fn is_default(param: &&Param) -> bool {
    matches!(&param.kind, ParamKind::Scalar(scalar) if matches!(scalar.source, ScalarSource::Default(_)))
}

fn has_defaults(kernel: &Kernel) -> bool {
    kernel.params.iter().any(|param| is_default(&param))
}

fn field_type(kernel: &Kernel, param: &Param) -> TokenStream {
    match &param.kind {
        ParamKind::Scalar(scalar) => types::element(kernel, &scalar.element.value),
        ParamKind::Struct(value) => {
            let ty = types::structure(value);
            quote!(&'a #ty)
        }
        ParamKind::Tensor(tensor) => {
            let element = types::element(kernel, &tensor.element.value);
            let view = match tensor.access {
                Access::Read => quote!(::tidelock::View<'a, #element>),
                Access::Write | Access::Update => quote!(::tidelock::ViewMut<'a, #element>),
            };
            if tensor.presence == Presence::Required { view } else { quote!(Option<#view>) }
        }
    }
}

/// `launch` of a struct that holds every argument.
fn launch(kernel: &Kernel) -> TokenStream {
    let (fields, table) = (field_names(kernel), names::table(kernel));
    let arguments = arguments(kernel);
    quote! {
        /// Checks the arguments and runs the kernel on `device`: the CPU arm before this returns, the GPU arm in the
        /// order of its stream.
        ///
        /// # Errors
        /// What does not fit the signature, naming the parameter; nothing has been written then.
        #[inline]
        pub fn launch(self, device: &::tidelock::Device) -> ::tidelock::Result<()> {
            let Self { #(#fields),* } = self;
            #table.launch(&mut [#(#arguments),*], device)
        }

        /// Checks the arguments and keeps them, so that each launch of what comes back runs the kernel again without a check.
        ///
        /// # Errors
        /// What does not fit the signature, naming the parameter.
        pub fn prepare(self, device: &::tidelock::Device) -> ::tidelock::Result<::tidelock::Prepared<'a>> {
            let Self { #(#fields),* } = self;
            #table.prepare([#(#arguments),*], device)
        }
    }
}

/// A setter for each parameter with a default. They return a second struct, so that one more of them changes no caller.
fn with_defaults(kernel: &Kernel) -> TokenStream {
    let with = names::arguments_with(kernel);
    let named = types::generics(kernel).named;
    let defaults: Vec<_> = kernel.params.iter().filter(is_default).collect();
    let fields: Vec<_> = defaults.iter().map(|param| names::field(&param.name.value)).collect();
    let setters = setters(kernel, &quote!(#with<'a, #named>), &quote!(self.with_defaults()));
    quote! {
        #(#setters)*

        /// All parameters with a default at theirs.
        #[inline]
        fn with_defaults(self) -> #with<'a, #named> {
            #with { required: self, #(#fields: None),* }
        }

        /// Checks the arguments and runs the kernel on `device` with every default: the CPU arm before this returns, the
        /// GPU arm in the order of its stream.
        ///
        /// # Errors
        /// What does not fit the signature, naming the parameter; nothing has been written then.
        #[inline]
        pub fn launch(self, device: &::tidelock::Device) -> ::tidelock::Result<()> {
            self.with_defaults().launch(device)
        }

        /// Checks the arguments, with every default, and keeps them, so that each launch of what comes back runs the kernel
        /// again without a check.
        ///
        /// # Errors
        /// What does not fit the signature, naming the parameter.
        pub fn prepare(self, device: &::tidelock::Device) -> ::tidelock::Result<::tidelock::Prepared<'a>> {
            self.with_defaults().prepare(device)
        }
    }
}

/// The second struct, where there are defaults.
pub fn emit_with(kernel: &Kernel) -> TokenStream {
    if !has_defaults(kernel) {
        return TokenStream::new();
    }
    let (name, with, generics) = (names::arguments(kernel), names::arguments_with(kernel), types::generics(kernel));
    let (declared, named) = (generics.declared, generics.named);
    let fields = kernel.params.iter().filter(is_default).map(|param| {
        let (field, ty) = (names::field(&param.name.value), field_type(kernel, param));
        quote!(#field: Option<#ty>)
    });
    let all: Vec<_> = kernel.params.iter().filter(is_default).map(|param| names::field(&param.name.value)).collect();
    let (required, table, arguments) = (field_names(kernel), names::table(kernel), arguments(kernel));
    let setters = setters(kernel, &quote!(Self), &quote!(self));
    let doc = format!("[`{name}`] with values for parameters that have a default.");
    quote! {
        #[doc = #doc]
        pub struct #with<'a, #declared> { required: #name<'a, #named>, #(#fields),* }

        impl<'a, #declared> #with<'a, #named> {
            #(#setters)*

            /// Checks the arguments and runs the kernel on `device`: the CPU arm before this returns, the GPU arm in the
            /// order of its stream.
            ///
            /// # Errors
            /// What does not fit the signature, naming the parameter; nothing has been written then.
            #[inline]
        pub fn launch(self, device: &::tidelock::Device) -> ::tidelock::Result<()> {
                let Self { required: #name { #(#required),* }, #(#all),* } = self;
                #table.launch(&mut [#(#arguments),*], device)
            }

            /// Checks the arguments and keeps them, so that each launch of what comes back runs the kernel again without a
            /// check.
            ///
            /// # Errors
            /// What does not fit the signature, naming the parameter.
            pub fn prepare(self, device: &::tidelock::Device) -> ::tidelock::Result<::tidelock::Prepared<'a>> {
                let Self { required: #name { #(#required),* }, #(#all),* } = self;
                #table.prepare([#(#arguments),*], device)
            }
        }
    }
}

fn setters(kernel: &Kernel, returns: &TokenStream, with: &TokenStream) -> Vec<TokenStream> {
    let setter = |param: &Param| {
        let (field, ty) = (names::field(&param.name.value), field_type(kernel, param));
        let doc = &param.doc;
        quote! {
            #[doc = #doc]
            #[must_use]
            pub fn #field(self, #field: #ty) -> #returns {
                let mut with = #with;
                with.#field = Some(#field);
                with
            }
        }
    };
    kernel.params.iter().filter(is_default).map(setter).collect()
}

fn field_names(kernel: &Kernel) -> Vec<proc_macro2::Ident> {
    kernel.params.iter().filter(|param| is_field(param)).map(|param| names::field(&param.name.value)).collect()
}

/// Each parameter as the runtime takes it, in order.
fn arguments(kernel: &Kernel) -> Vec<TokenStream> {
    let argument = |param: &Param| {
        let field = names::field(&param.name.value);
        match &param.kind {
            ParamKind::Tensor(_) => quote!(#field.into()),
            ParamKind::Struct(_) => quote!(::tidelock::Argument::Struct(#field)),
            ParamKind::Scalar(scalar) => match scalar.source {
                ScalarSource::Caller => quote!(::tidelock::Argument::Scalar(::tidelock::Element::to_scalar(#field))),
                ScalarSource::Default(_) => {
                    quote!(#field.map_or(::tidelock::Argument::Absent, |value| {
                        ::tidelock::Argument::Scalar(::tidelock::Element::to_scalar(value))
                    }))
                }
                ScalarSource::Dim | ScalarSource::Stride(_) => quote!(::tidelock::Argument::Absent),
            },
        }
    };
    kernel.params.iter().map(argument).collect()
}

/// The doc of a field: its meaning, shape, presence and values, and the line that declares it.
fn document(param: &Param, file: &str, line: usize) -> String {
    let mut text = param.doc.clone();
    if let ParamKind::Tensor(Tensor { shape, presence, access, stride_param, .. }) = &param.kind {
        let extents: Vec<_> = shape.iter().map(|extent| extent.value.to_string()).collect();
        text += &format!("\n\nShape `[{}]`", extents.join(", "));
        text += match access {
            Access::Read => ", read",
            Access::Write => ", written whole",
            Access::Update => ", updated",
        };
        text += if shape.len() < 2 {
            ""
        } else if stride_param.is_some() {
            ", any row stride"
        } else {
            ", contiguous"
        };
        text += &match presence {
            Presence::Required => String::new(),
            Presence::Optional => ", optional".into(),
            Presence::With(other) => format!(", given exactly when `{other}` is"),
        };
        text.push('.');
    }
    if let Some((arm, reason)) = &param.refused {
        text += &format!(" The {} arm refuses it: {reason}", if *arm == Arm::Gpu { "GPU" } else { "CPU" });
    }
    if let Some(values) = domain(&param.domain) {
        text += &format!(" Values: {values}.");
    }
    text + &format!(" `{file}:{line}`")
}

fn domain(domain: &Domain) -> Option<String> {
    Some(match domain {
        Domain::Any => return None,
        Domain::Range(low, high) => format!("from {low} to below {high}"),
        Domain::TokenIds => "token ids, or -1".into(),
        Domain::InclusiveCumsum(total) => format!("non-decreasing, from 0 to `{total}`"),
        Domain::Probabilities => "rows that are non-negative and sum to 1".into(),
        Domain::Positive => "greater than 0".into(),
        Domain::NonNegative => "at least 0".into(),
        Domain::Unit => "from 0 to 1".into(),
        Domain::OpenUnit => "between 0 and 1, neither included".into(),
        Domain::Logits => "finite or -inf".into(),
    })
}
