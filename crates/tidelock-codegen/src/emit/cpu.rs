//! What the CPU arm takes apart, and the function that hands it over.
//!
//! What it takes is said by [`Param::reaches_cpu`] and [`Constant::cpu_value`].

use proc_macro2::TokenStream;
use quote::quote;

use super::{Linked, types, wrapper};
use crate::model::{Access, Constant, DType, Kernel, Literal, Param, ParamKind, Presence};
use crate::names;

pub fn emit(linked: &Linked<'_>) -> TokenStream {
    let kernel = linked.kernel;
    let (name, generics) = (names::cpu_arguments(kernel), types::generics(kernel));
    let declared = generics.declared;
    let fields =
        kernel.params.iter().zip(&linked.param_lines).filter(|(param, _)| param.reaches_cpu()).map(|(param, line)| {
            let (field, ty) = (names::field(&param.name.value), field_type(kernel, param));
            let doc = format!("{} `{}:{line}`", param.doc, linked.signature.0);
            quote!(#[doc = #doc] pub #field: #ty)
        });
    let constants = kernel.constants.iter().filter(|constant| constant.cpu_value().is_some()).map(|constant| {
        let (field, ty, doc) = (names::field(&constant.name.value), types::rust(constant.dtype), &constant.doc);
        quote!(#[doc = #doc] pub #field: #ty)
    });
    let doc = format!("What the CPU arm of `{}` takes apart, checked.", kernel.name.value);
    let (with, run) = (wrapper::emit_with(kernel), run(kernel));
    quote! {
        #with

        #[doc = #doc]
        pub struct #name<'a, #declared> { #(#fields,)* #(#constants,)* }

        #run
    }
}

fn field_type(kernel: &Kernel, param: &Param) -> TokenStream {
    match &param.kind {
        ParamKind::Scalar(scalar) => types::element(kernel, &scalar.element.value),
        ParamKind::Struct(value) => types::structure(value),
        ParamKind::Tensor(tensor) => {
            let element = types::element(kernel, &tensor.element.value);
            let ty = match (tensor.shape.len(), tensor.access) {
                (1, Access::Read) => quote!(&'a [#element]),
                (1, _) => quote!(&'a mut [#element]),
                (_, Access::Read) => quote!(::tidelock::Rows<'a, #element>),
                _ => quote!(::tidelock::RowsMut<'a, #element>),
            };
            if tensor.presence == Presence::Required { ty } else { quote!(Option<#ty>) }
        }
    }
}

/// The function of the run-time table: it finds the types, takes the arguments apart and runs the arm.
fn run(kernel: &Kernel) -> TokenStream {
    let (function, name, table) = (names::run_cpu(kernel), names::cpu_arguments(kernel), names::table(kernel));
    let generics = types::generics(kernel);
    let (declared, named) = (generics.declared, generics.named);
    let values = kernel.params.iter().enumerate().filter(|(_, param)| param.reaches_cpu()).map(|(index, param)| {
        let (field, value) = (names::field(&param.name.value), value(kernel, index, param));
        quote!(#field: #value)
    });
    let constants = kernel.constants.iter().filter_map(|constant| {
        let (field, value) = (names::field(&constant.name.value), literal(constant.cpu_value()?, constant));
        Some(quote!(#field: #value))
    });
    let arms = combinations(kernel).into_iter().map(|types| {
        let (patterns, types): (Vec<_>, Vec<_>) = types.iter().map(|&ty| (types::dtype(ty), types::rust(ty))).unzip();
        quote!([#(#patterns),*] => arm::<#(#types),*>(args, bound),)
    });
    quote! {
        fn #function(args: &mut [::tidelock::Argument<'_>], bound: &::tidelock::Bound) -> ::tidelock::Result<()> {
            #[allow(unused_variables)] // an arm without scalars has no use for `bound`
            fn arm<#declared>(args: &mut [::tidelock::Argument<'_>], bound: &::tidelock::Bound) -> ::tidelock::Result<()>
            where
                for<'a> #name<'a, #named>: ::tidelock::CpuArm,
            {
                ::tidelock::CpuArm::run(#name::<'_, #named> { #(#values,)* #(#constants,)* });
                Ok(())
            }
            match *bound.types() {
                #(#arms)*
                #[allow(unreachable_patterns)]
                _ => Err(::tidelock::Error::generator(&#table)),
            }
        }
    }
}

pub fn value(kernel: &Kernel, index: usize, param: &Param) -> TokenStream {
    let table = names::table(kernel);
    match &param.kind {
        ParamKind::Scalar(_) => quote!(bound.scalar(&#table, #index)?),
        ParamKind::Struct(_) => quote!(args[#index].take_struct(&#table)?),
        ParamKind::Tensor(tensor) => {
            let take = match (tensor.shape.len(), tensor.access) {
                (1, Access::Read) => quote!(take_slice),
                (1, _) => quote!(take_slice_mut),
                (_, Access::Read) => quote!(take_rows),
                _ => quote!(take_rows_mut),
            };
            if tensor.presence == Presence::Required {
                quote!(args[#index].#take(&#table)?)
            } else {
                quote!(args[#index].take_optional(|argument| argument.#take(&#table))?)
            }
        }
    }
}

pub fn literal(literal: &Literal, constant: &Constant) -> TokenStream {
    let ty = types::rust(constant.dtype);
    match literal {
        Literal::Bool(value) => quote!(#value),
        Literal::Int(value) => quote!(#value as #ty),
        Literal::Float(value) => quote!(#value as #ty),
    }
}

/// Every choice of types; one empty choice where there are no type variables.
pub fn combinations(kernel: &Kernel) -> Vec<Vec<DType>> {
    let extend = |all: Vec<Vec<_>>, choices: &[_]| {
        all.iter().flat_map(|types| choices.iter().map(move |&choice| [types.as_slice(), &[choice]].concat())).collect()
    };
    kernel.types.iter().fold(vec![vec![]], |all, variable| extend(all, &variable.choices))
}
