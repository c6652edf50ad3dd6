//! Arithmetic of figures.

/// The one in the middle; zero of none.
#[must_use]
pub fn median(figures: impl IntoIterator<Item = f64>) -> f64 {
    let mut figures: Vec<f64> = figures.into_iter().collect();
    figures.sort_by(f64::total_cmp);
    figures.get(figures.len() / 2).copied().unwrap_or_default()
}

/// The figure below which that part (0 to 1) of them lies; zero of none.
#[must_use]
pub fn percentile(figures: &[f64], part: f64) -> f64 {
    let mut figures = figures.to_vec();
    figures.sort_by(f64::total_cmp);
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a rank: within the list")]
    let rank = (figures.len() as f64 * part).ceil().max(1.0) as usize;
    figures.get(rank - 1).copied().unwrap_or_default()
}

/// `figure` to the nearest part of `parts`.
#[must_use]
pub fn rounded(figure: f64, parts: f64) -> f64 {
    (figure * parts).round() / parts
}
