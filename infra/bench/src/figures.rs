//! Arithmetic of figures.

/// The one in the middle; zero of none.
#[must_use]
pub fn median(figures: impl IntoIterator<Item = f64>) -> f64 {
    let mut figures: Vec<f64> = figures.into_iter().collect();
    figures.sort_by(f64::total_cmp);
    figures.get(figures.len() / 2).copied().unwrap_or_default()
}

/// `figure` to the nearest part of `parts`.
#[must_use]
pub fn rounded(figure: f64, parts: f64) -> f64 {
    (figure * parts).round() / parts
}
