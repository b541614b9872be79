//! The shapes that a function may have to become a handler.
//!
//! A trait implemented for several shapes of functions has one of these as its parameter, so that the implementations
//! do not overlap. Nobody names them: the compiler finds the one that fits.

/// Functions of arguments and context.
#[doc(hidden)]
#[derive(Debug)]
pub struct Both<A>(A);

/// Functions of arguments.
#[doc(hidden)]
#[derive(Debug)]
pub struct Arguments<A>(A);

/// Functions of the context.
#[doc(hidden)]
#[derive(Debug)]
pub struct Contextual;

/// Functions of nothing.
#[doc(hidden)]
#[derive(Debug)]
pub struct Nothing;
