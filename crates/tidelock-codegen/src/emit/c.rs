//! What a registry takes from C: the committed bindings as a module, the structs in the table, and the CPU arms in C or C++.
//!
//! The type of each C function follows from the registry; the bound function is assigned to it, so that one which differs
//! is an error of rustc. A function takes, in the registry's order, a pointer for each tensor (null where it is absent), the
//! value of each scalar, strides included, and each struct; then the constants that the CPU arm sees; then, as `int64_t`,
//! the sizes that are no parameter.

use proc_macro2::TokenStream;
use quote::{format_ident, quote};

use super::{Linked, cpu, types};
use crate::bindings::{self, Bindings};
use crate::model::{Access, Arm, DType, Element, Kernel, Param, ParamKind, Presence, Registry, Struct};
use crate::names;

/// Why the calls are sound, beside them in the generated code, where comments are lost.
const PROOF: &str = "SAFETY of each call: the function has the registry's type, to which it is assigned, and is the one that the \
    bound header declares. Each pointer leads to the elements that the registry gives its tensor: checked, borrowed for the \
    call, and exclusively where it is written. That the function stays inside them, for any values, is what an arm promises.";

/// The module of what bindgen read, with the layouts that the other arm has; nothing where the registry names no C.
pub fn bindings(registry: &Registry, bindings: &Bindings) -> TokenStream {
    let wanted = bindings::wanted(registry);
    if wanted.headers.is_empty() {
        return TokenStream::new();
    }
    let path = format!("/{}", bindings::PATH);
    let asserts = wanted.structs.iter().filter_map(|name| {
        let layout = bindings.structs.get(name)?.as_ref().ok()?;
        let (ident, size, align) = (format_ident!("{name}"), layout.size, layout.align);
        let wrong = format!("{name} is laid out otherwise on the GPU: run `tidelock bind`");
        Some(quote!(
            const _: () =
                assert!(size_of::<bindings::#ident>() == #size && align_of::<bindings::#ident>() == #align, #wrong);
        ))
    });
    let structs = wanted.structs.iter().map(|name| format_ident!("{name}"));
    quote! {
        /// What the registry takes from C headers, as bindgen reads them.
        #[allow(unsafe_code, unused, missing_docs, non_camel_case_types, non_snake_case, non_upper_case_globals)]
        pub mod bindings {
            include!(concat!(env!("CARGO_MANIFEST_DIR"), #path));
        }
        #(pub use bindings::#structs;)*
        #(#asserts)*
    }
}

/// A struct's entry in the run-time table.
pub fn kind(value: &Struct, bindings: &Bindings) -> TokenStream {
    let (name, ty) = (&value.name.value, types::structure(value));
    let fields =
        bindings.structs.get(name).and_then(|layout| layout.as_ref().ok()).map_or(&[][..], |layout| &layout.fields);
    let rows = fields.iter().map(|field| {
        let (name, dtype, count) = (&field.name, types::dtype(field.dtype), field.count.unwrap_or(1));
        quote!(Field { name: #name, dtype: #dtype, count: #count })
    });
    let values = fields.iter().map(|field| {
        let (name, ty) = (format_ident!("{}", field.name), types::rust(field.dtype));
        match field.count {
            None => quote!(#name: draw.value::<#ty>()),
            Some(count) => quote!(#name: std::array::from_fn::<#ty, #count, _>(|_| draw.value())),
        }
    });
    quote! {
        ParamKind::Struct {
            name: #name,
            id: || std::any::TypeId::of::<#ty>(),
            fields: &[#(#rows),*],
            make: |draw| Box::new(#ty { #(#values),* }),
        }
    }
}

/// The function of the run-time table: it finds the types and calls the arm in C.
pub fn arm(linked: &Linked<'_>) -> TokenStream {
    let kernel = linked.kernel;
    let (function, table) = (names::run_cpu(kernel), names::table(kernel));
    let with = super::wrapper::emit_with(kernel);
    let arms = cpu::combinations(kernel).into_iter().zip(bindings::functions(kernel)).map(|(choice, name)| {
        let patterns: Vec<_> = choice.iter().map(|&dtype| types::dtype(dtype)).collect();
        let call = call(linked, &choice, &name);
        quote!([#(#patterns),*] => #call,)
    });
    quote! {
        #with

        #[doc = #PROOF]
        #[allow(unsafe_code, clippy::undocumented_unsafe_blocks)]
        fn #function(args: &mut [::tidelock::Argument<'_>], bound: &::tidelock::Bound) -> ::tidelock::Result<()> {
            match *bound.types() {
                #(#arms)*
                #[allow(unreachable_patterns)]
                _ => Err(::tidelock::Error::generator(&#table)),
            }
        }
    }
}

/// The call of one C function, after its type has been compared with the registry.
fn call(linked: &Linked<'_>, choice: &[DType], name: &str) -> TokenStream {
    let kernel = linked.kernel;
    let (bound_function, ty) = (format_ident!("{name}"), format_ident!("{}InC", names::camel(name)));
    let params: Vec<_> = kernel.params.iter().enumerate().filter(|(_, param)| reaches_c(param)).collect();
    let taken = params.iter().map(|(index, param)| {
        let (field, take) = (names::field(&param.name.value), take(kernel, choice, *index, param));
        quote!(let #field = #take;)
    });
    let constants: Vec<_> =
        kernel.constants.iter().filter_map(|constant| Some((constant, constant.cpu_value()?))).collect();
    let sizes: Vec<_> =
        kernel.dims.iter().enumerate().filter(|(_, dim)| kernel.param(&dim.name.value).is_none()).collect();
    let declared = params.iter().map(|(_, param)| {
        let (field, ty) = (names::field(&param.name.value), c_type(kernel, choice, param));
        quote!(#field: #ty)
    });
    let declared = declared
        .chain(constants.iter().map(|(constant, _)| {
            let (field, ty) = (names::field(&constant.name.value), types::rust(constant.dtype));
            quote!(#field: #ty)
        }))
        .chain(sizes.iter().map(|(_, dim)| {
            let field = names::field(&dim.name.value);
            quote!(#field: i64)
        }));
    let passed = params.iter().map(|(_, param)| pass(choice, kernel, param));
    let passed = passed
        .chain(constants.iter().map(|(constant, literal)| cpu::literal(literal, constant)))
        .chain(sizes.iter().map(|(index, _)| quote!(bound.dims()[#index])));
    let doc = format!("`{name}` in {}, as the registry declares it.", linked.cpu.0);
    quote! {{
        #[doc = #doc]
        type #ty = unsafe extern "C" fn(#(#declared),*);
        const ARM: #ty = bindings::#bound_function;
        #(#taken)*
        unsafe { ARM(#(#passed),*) };
        Ok(())
    }}
}

/// Whether a C function takes it: all but what only the kernel uses and what the arm refuses.
fn reaches_c(param: &Param) -> bool {
    !matches!(param.only, Some((Arm::Gpu, _))) && !matches!(param.refused, Some((Arm::Cpu, _)))
}

fn dtype(kernel: &Kernel, choice: &[DType], element: &Element) -> DType {
    match element {
        Element::Fixed(dtype) => *dtype,
        Element::Variable(name) => {
            let index = kernel.types.iter().position(|variable| variable.name.value == *name);
            index.and_then(|index| choice.get(index)).copied().unwrap_or(DType::U8)
        }
    }
}

/// What a C function has for an element: C has no 16-bit floats that all compilers know, so it is given their bits.
fn c_element(dtype: DType) -> TokenStream {
    types::rust(if matches!(dtype, DType::F16 | DType::BF16) { DType::U16 } else { dtype })
}

fn c_type(kernel: &Kernel, choice: &[DType], param: &Param) -> TokenStream {
    match &param.kind {
        ParamKind::Struct(value) => types::structure(value),
        ParamKind::Scalar(scalar) => c_element(dtype(kernel, choice, &scalar.element.value)),
        ParamKind::Tensor(tensor) => {
            let element = c_element(dtype(kernel, choice, &tensor.element.value));
            if tensor.access == Access::Read { quote!(*const #element) } else { quote!(*mut #element) }
        }
    }
}

/// The argument as Rust has it: a slice or matrix, a value, a struct.
fn take(kernel: &Kernel, choice: &[DType], index: usize, param: &Param) -> TokenStream {
    let table = names::table(kernel);
    match &param.kind {
        ParamKind::Struct(value) => {
            let ty = types::structure(value);
            quote!(args[#index].take_struct::<#ty>(&#table)?)
        }
        ParamKind::Scalar(scalar) => {
            let ty = types::rust(dtype(kernel, choice, &scalar.element.value));
            quote!(bound.scalar::<#ty>(&#table, #index)?)
        }
        ParamKind::Tensor(tensor) => {
            let ty = types::rust(dtype(kernel, choice, &tensor.element.value));
            let (value, mutable) = (cpu::value(kernel, index, param), tensor.access != Access::Read);
            let ty = match (tensor.shape.len(), mutable) {
                (1, false) => quote!(&[#ty]),
                (1, true) => quote!(&mut [#ty]),
                (_, false) => quote!(::tidelock::Rows<'_, #ty>),
                (_, true) => quote!(::tidelock::RowsMut<'_, #ty>),
            };
            let ty = if tensor.presence == Presence::Required { ty } else { quote!(Option<#ty>) };
            let method = if mutable { quote!(as_mut_ptr) } else { quote!(as_ptr) };
            let null = if mutable { quote!(null_mut) } else { quote!(null) };
            match (tensor.presence == Presence::Required, mutable) {
                (true, true) => quote!({ let mut tensor: #ty = #value; tensor.#method() }),
                (true, false) => quote!({ let tensor: #ty = #value; tensor.#method() }),
                (false, true) => {
                    quote!({ let tensor: #ty = #value; tensor.map_or(std::ptr::#null(), |mut tensor| tensor.#method()) })
                }
                (false, false) => {
                    quote!({ let tensor: #ty = #value; tensor.map_or(std::ptr::#null(), |tensor| tensor.#method()) })
                }
            }
        }
    }
}

fn pass(choice: &[DType], kernel: &Kernel, param: &Param) -> TokenStream {
    let field = names::field(&param.name.value);
    let bits =
        param.element().is_some_and(|element| matches!(dtype(kernel, choice, element), DType::F16 | DType::BF16));
    match (&param.kind, bits) {
        (ParamKind::Tensor(_), true) => quote!(#field.cast()),
        (ParamKind::Scalar(_), true) => quote!(#field.to_bits()),
        _ => quote!(#field),
    }
}
