//! From functions to something that answers a method.

use std::sync::Arc;

use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;
use turnbuckle_protocol::{RpcError, json};

use super::Response;
use crate::{
    RequestError, arguments,
    context::Context,
    exchange::BoxFuture,
    shape::{Arguments, Both, Contextual, Nothing},
};

/// A method's function behind one pointer: raw parameters and the context in, a future of the response back.
pub(crate) type Respond = Arc<
    dyn Fn(&str, Context) -> Result<BoxFuture<Result<Response, RequestError>>, RpcError>
        + Send
        + Sync,
>;

/// Implemented by the async functions of [`Extension::method`](crate::Extension::method); `M` keeps their shapes apart.
#[diagnostic::on_unimplemented(
    message = "this function cannot answer a method",
    label = "a method is an async function `(params)`, `(cx)`, `(params, cx)` or `()` that returns a `Result`",
    note = "parameters implement `serde::Deserialize`, the result `serde::Serialize`; the error converts into `RequestError`"
)]
pub trait MethodHandler<M> {
    #[doc(hidden)]
    fn into_respond(self) -> Respond;
}

/// Reads typed parameters and boxes the future that `start` makes of them.
fn typed<A, S, Fut, T, E>(start: S) -> Respond
where
    A: DeserializeOwned + Send + 'static,
    S: Fn(A, Context) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<T, E>> + Send + 'static,
    T: Serialize,
    E: Into<RequestError>,
{
    Arc::new(move |params: &str, cx: Context| {
        let params = json::from_str(params)?;
        let run = start(params, cx);
        let future: BoxFuture<_> = Box::pin(async move { object(run.await.map_err(Into::into)?) });
        Ok(future)
    })
}

fn object(result: impl Serialize) -> Result<Response, RequestError> {
    match serde_json::to_value(result)? {
        Value::Object(object) => Ok(Response::Object(object)),
        Value::Null => Ok(Response::Object(Default::default())),
        _ => Err(RequestError::internal(
            "the result of a method is an object",
        )),
    }
}

/// Implements the trait for one shape of function.
macro_rules! shape {
    ([$($generic:ident)?] $marker:ty, $read:ty, ($($input:ty),*), |$params:ident, $cx:ident| ($($pass:ident),*)) => {
        impl<$($generic,)? F, Fut, T, E> MethodHandler<$marker> for F
        where
            $($generic: DeserializeOwned + Send + 'static,)?
            F: Fn($($input),*) -> Fut + Send + Sync + 'static,
            Fut: Future<Output = Result<T, E>> + Send + 'static,
            T: Serialize,
            E: Into<RequestError>,
        {
            fn into_respond(self) -> Respond {
                typed(move |$params: $read, $cx: Context| self($($pass),*))
            }
        }
    };
}

shape!([A] Both<A>, A, (A, Context), |params, cx| (params, cx));
shape!([A] Arguments<A>, A, (A), |params, _cx| (params));
shape!([] Contextual, arguments::Any, (Context), |_params, cx| (cx));
shape!([] Nothing, arguments::Any, (), |_params, _cx| ());
