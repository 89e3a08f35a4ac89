//! Figures for people: medians, percentiles, tables.

/// The value below which `share` (0 to 1) of the sorted values lie; 0 if there are none.
pub fn percentile(sorted: &[u64], share: f64) -> u64 {
    let last = sorted.len().saturating_sub(1);
    sorted.get((share * last as f64).round() as usize).copied().unwrap_or(0)
}

/// The middle one, or the mean of the two in the middle.
pub fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    match sorted.len() {
        0 => f64::NAN,
        n if n % 2 == 1 => sorted[n / 2],
        n => f64::midpoint(sorted[n / 2 - 1], sorted[n / 2]),
    }
}

/// Lines of cells as a table: the first column to the left, the others to the right, two spaces between.
pub fn table(rows: &[Vec<String>]) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column: usize| {
        rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let mut text = String::new();
    for row in rows {
        let mut line = String::new();
        for (column, cell) in row.iter().enumerate() {
            let width = widths[column];
            line.push_str(&if column == 0 { format!("{cell:<width$}") } else { format!("   {cell:>width$}") });
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_exact_for_101_values() {
        let sorted: Vec<u64> = (0..=100).collect();
        assert_eq!([0.0, 0.5, 0.99, 1.0].map(|share| percentile(&sorted, share)), [0, 50, 99, 100]);
        assert_eq!(percentile(&[], 0.5), 0);
    }

    #[test]
    fn median_ignores_order() {
        assert_eq!(median(&[3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), 2.5);
    }

    #[test]
    fn columns_line_up() {
        let rows = [vec!["", "plain", "guarded"], vec!["lost", "12", "0"]];
        let rows = rows.map(|row| row.into_iter().map(str::to_owned).collect::<Vec<_>>());
        assert_eq!(table(&rows), "       plain   guarded\nlost      12         0\n");
    }
}
