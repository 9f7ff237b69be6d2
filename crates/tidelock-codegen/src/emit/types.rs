//! Types and generics of one kernel as tokens.

use proc_macro2::TokenStream;
use quote::{format_ident, quote};

use crate::model::{DType, Element, Kernel, Struct};
use crate::names;

/// The Rust type of an element type.
pub fn rust(dtype: DType) -> TokenStream {
    match dtype {
        DType::F16 => quote!(::tidelock::f16),
        DType::BF16 => quote!(::tidelock::bf16),
        other => {
            let name = format_ident!("{}", other.name());
            quote!(#name)
        }
    }
}

/// The variant of the runtime's `DType`.
pub fn dtype(dtype: DType) -> TokenStream {
    let name = format_ident!("{}", format!("{dtype:?}"));
    quote!(::tidelock::DType::#name)
}

/// The Rust type of a declared element: a type, or the generic parameter that stands for it.
pub fn element(kernel: &Kernel, element: &Element) -> TokenStream {
    match element {
        Element::Fixed(dtype) => rust(*dtype),
        Element::Variable(name) => match kernel.type_variable(name) {
            Some(variable) => {
                let parameter = names::type_parameter(kernel, variable);
                quote!(#parameter)
            }
            None => quote!(compile_error!("unknown type variable")),
        },
    }
}

/// The Rust type of a struct of C.
pub fn structure(value: &Struct) -> TokenStream {
    let name = format_ident!("{}", value.name.value);
    quote!(bindings::#name)
}

/// Generic parameters of a kernel's structs.
pub struct Generics {
    /// `InvQ: SampleRecoveredTokensInvQ,`
    pub declared: TokenStream,
    /// `InvQ,`
    pub named: TokenStream,
}

/// The generics of `kernel`, one a type variable.
pub fn generics(kernel: &Kernel) -> Generics {
    let (mut declared, mut named) = (TokenStream::new(), TokenStream::new());
    for variable in &kernel.types {
        let (parameter, bound) = (names::type_parameter(kernel, variable), names::type_bound(kernel, variable));
        declared.extend(quote!(#parameter: #bound,));
        named.extend(quote!(#parameter,));
    }
    Generics { declared, named }
}

/// The traits that bound the type parameters.
pub fn bounds(kernel: &Kernel) -> TokenStream {
    let traits = kernel.types.iter().map(|variable| {
        let bound = names::type_bound(kernel, variable);
        let choices: Vec<_> = variable.choices.iter().map(|&choice| rust(choice)).collect();
        let list: Vec<_> = variable.choices.iter().map(|choice| format!("`{}`", choice.name())).collect();
        let doc =
            format!("Element types of `{}` in `{}`: {}.", variable.name.value, kernel.name.value, list.join(", "));
        quote! {
            #[doc = #doc]
            pub trait #bound: ::tidelock::Element {}
            #(impl #bound for #choices {})*
        }
    });
    quote!(#(#traits)*)
}
