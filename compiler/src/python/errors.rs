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
        Error::Defect(_) => "InternalError",
    };
    let hint = match &error {
        Error::Limit { which, .. } => hint(which),
        Error::Defect(_) => "please report it; the grammar can be compiled anew".to_owned(),
        _ => String::new(),
    };
    let make = || py.import("grammarspec.errors")?.getattr(class)?.call1((error.to_string(), place, hint));
    make().map_or_else(|e| e, PyErr::from_value)
}

/// What to do about a limit: its name begins with that of the parameter that sets it, if one does.
fn hint(which: &str) -> String {
    let parameter = which.split(' ').next().unwrap_or_default();
    if parameter.starts_with("max_") || parameter == "timeout" {
        format!("make the grammar simpler, or give limits=gs.Limits({parameter}=...)")
    } else {
        "make the grammar simpler: this limit is fixed".to_owned()
    }
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
