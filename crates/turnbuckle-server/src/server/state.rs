//! Values of the application that all handlers share.

use std::{
    any::{Any, TypeId, type_name},
    collections::HashMap,
    sync::Arc,
};

use super::Server;
use crate::{
    Context, Prompt, Resource, ResourceTemplate, Tool, catalog::completion::Completers,
    tools::InvokeTool,
};

/// Shared values, one of each type.
#[derive(Clone, Default)]
pub(crate) struct SharedState {
    values: HashMap<TypeId, Arc<dyn Any + Send + Sync>>,
}

impl SharedState {
    fn get<T: 'static>(&self) -> Option<&T> {
        self.values.get(&TypeId::of::<T>())?.downcast_ref()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// Returns these values, and those of `outer` for all other types.
    fn over(&self, outer: &Self) -> Arc<Self> {
        let mut values = outer.values.clone();
        values.extend(self.values.iter().map(|(id, value)| (*id, value.clone())));
        Arc::new(Self { values })
    }
}

impl Server {
    /// Adds a value that handlers get with [`Context::state`], such as a connection pool. A value of the same type is
    /// replaced.
    ///
    /// The handlers of a mounted server get the values of that server, and those of the servers it is mounted in for
    /// other types.
    ///
    /// ```
    /// use std::sync::atomic::{AtomicU64, Ordering};
    /// use turnbuckle_server::{Context, Server, Tool};
    ///
    /// #[derive(Default)]
    /// struct Counter(AtomicU64);
    ///
    /// let server = Server::new("counter", "1.0.0")
    ///     .state(Counter::default())
    ///     .tool(Tool::new("count", async |cx: Context| {
    ///         Ok(cx.state::<Counter>().0.fetch_add(1, Ordering::Relaxed) + 1)
    ///     }));
    /// ```
    #[must_use]
    pub fn state<T: Send + Sync + 'static>(self, value: T) -> Self {
        self.set(|settings| {
            let values = &mut Arc::make_mut(&mut settings.state).values;
            values.insert(TypeId::of::<T>(), Arc::new(value));
        })
    }
}

impl Context {
    /// Returns the value of this type that was added with [`Server::state`].
    ///
    /// # Panics
    ///
    /// If the value is missing. The call then fails like one with any other panic; use [`try_state`](Self::try_state) for
    /// values that may be absent.
    pub fn state<T: 'static>(&self) -> &T {
        self.try_state().unwrap_or_else(|| {
            let name = type_name::<T>();
            panic!("state of type `{name}` is missing: add it with `Server::state`")
        })
    }

    /// Like [`state`](Self::state), with `None` if the value is missing.
    pub fn try_state<T: 'static>(&self) -> Option<&T> {
        let of_mounted = self.call.mounted_state.get();
        of_mounted
            .and_then(|state| state.get())
            .or_else(|| self.call.server.inner.settings.state.get())
    }

    /// Uses the values of a mounted server. The outermost of nested mounts comes first, and includes the others.
    fn enter_state(&self, state: &Arc<SharedState>) {
        let _ = self.call.mounted_state.set(state.clone());
    }
}

/// Returns the values for an item of a mounted server with the values `mounted`.
fn merge(item: Option<&Arc<SharedState>>, mounted: &Arc<SharedState>) -> Arc<SharedState> {
    match item {
        Some(own) => own.over(mounted),
        None => mounted.clone(),
    }
}

impl Tool {
    /// Returns the tool for use outside of its server, with the values of its server.
    pub(super) fn with_state(mut self, mounted: &Arc<SharedState>) -> Self {
        let state = merge(self.state.as_ref(), mounted);
        self.state = Some(state.clone());
        let invoke = self.invoke;
        let with_state: Arc<dyn InvokeTool> = Arc::new(move |arguments: &str, cx: Context| {
            cx.enter_state(&state);
            invoke.invoke(arguments, cx)
        });
        self.invoke = with_state;
        self
    }
}

impl Prompt {
    /// See [`Tool::with_state`].
    pub(super) fn with_state(mut self, mounted: &Arc<SharedState>) -> Self {
        let state = merge(self.state.as_ref(), mounted);
        self.state = Some(state.clone());
        self.completers = self.completers.with_state(&state);
        let prompt_fn = self.prompt_fn;
        self.prompt_fn = Arc::new(move |arguments, cx| {
            cx.enter_state(&state);
            prompt_fn(arguments, cx)
        });
        self
    }
}

impl Resource {
    /// See [`Tool::with_state`].
    pub(super) fn with_state(mut self, mounted: &Arc<SharedState>) -> Self {
        let state = merge(self.state.as_ref(), mounted);
        self.state = Some(state.clone());
        let read = self.read;
        self.read = Arc::new(move |uri, cx| {
            cx.enter_state(&state);
            read(uri, cx)
        });
        self
    }
}

impl ResourceTemplate {
    /// See [`Tool::with_state`].
    pub(super) fn with_state(mut self, mounted: &Arc<SharedState>) -> Self {
        let state = merge(self.state.as_ref(), mounted);
        self.state = Some(state.clone());
        self.completers = self.completers.with_state(&state);
        let read = self.read;
        self.read = Arc::new(move |variables, uri, cx| {
            cx.enter_state(&state);
            read(variables, uri, cx)
        });
        self
    }
}

impl Completers {
    fn with_state(&self, state: &Arc<SharedState>) -> Self {
        self.map(|completer| {
            let state = state.clone();
            Arc::new(move |request, cx| {
                cx.enter_state(&state);
                completer(request, cx)
            })
        })
    }
}
