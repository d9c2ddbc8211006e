//! The crate's errors as the exceptions of `grammarspec.errors`.

use pyo3::prelude::*;

use crate::error::Error;

/// The exception of an error.
pub(super) fn raise(py: Python<'_>, error: Error) -> PyErr {
    let (error, place) = match error {
        Error::At(error, place) => (*error, place),
        error => (error, String::new()),
    };
    let class = match &error {
        Error::Malformed(_) => "GrammarSyntaxError",
        Error::Unsupported(_) => "UnsupportedFeature",
        Error::Unsatisfiable(_) => "Unsatisfiable",
        Error::Limit { .. } | Error::TooLarge { .. } => "LimitExceeded",
        Error::Cancelled => "Cancelled",
        Error::At(..) => unreachable!("a place is given once"),
        Error::InnerBytes => unreachable!("such grammars are compiled over characters"),
        Error::Interrupted => unreachable!("brief calls are made again"),
        Error::Collected(_) => "StateCollected",
    };
    let make = || py.import("grammarspec.errors")?.getattr(class)?.call1((error.to_string(), place));
    make().map_or_else(|e| e, PyErr::from_value)
}

/// Results whose errors become exceptions.
pub(super) trait OrRaise<T> {
    fn or_raise(self, py: Python<'_>) -> PyResult<T>;
}

impl<T> OrRaise<T> for Result<T, Error> {
    fn or_raise(self, py: Python<'_>) -> PyResult<T> {
        self.map_err(|e| raise(py, e))
    }
}
