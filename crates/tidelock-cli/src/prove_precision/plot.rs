//! The proof as a picture: for each question, how many events were counted for each that was expected.

use std::fmt::Write;

use super::noise::Noise;
use super::report::{Finding, Report, Verdict};

const WIDTH: f64 = 960.0;
const HEIGHT: f64 = 540.0;
const LEFT: f64 = 80.0;
const TOP: f64 = 110.0;
const BOTTOM: f64 = 430.0;
/// Largest ratio that has a place; a larger one is drawn at the edge.
const MOST: f64 = 2.0;

/// An SVG that stands alone.
pub fn svg(report: &Report) -> String {
    let mut svg = String::new();
    let questions: Vec<(String, &[Finding])> = [("noise below 2⁻²⁴".to_string(), &report.lower_tail[..])]
        .into_iter()
        .chain(report.races.chunks(Noise::ALL.len()).map(|race| (format!("gap {}", race[0].gap.unwrap_or(0.0)), race)))
        .collect();
    let width = (WIDTH - LEFT - 30.0) / questions.len() as f64;
    _ = write!(
        svg,
        r##"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" font-size="14" fill="#222">
<rect width="{WIDTH}" height="{HEIGHT}" fill="#fff"/>
<text x="{LEFT}" y="36" font-size="22" font-weight="bold">Are rare tokens drawn as often as they should be?</text>
<text x="{LEFT}" y="60">{} races of one head against {} tail tokens, each e^gap times less likely; counted ÷ expected</text>
"##,
        report.trials, report.tail
    );
    legend(&mut svg);
    for (ratio, text) in [(0.0, "0 never"), (0.5, "0.5"), (1.0, "1 right"), (1.5, "1.5"), (2.0, "2")] {
        let (y, colour) = (height(ratio), if ratio == 1.0 { "#222" } else { "#ddd" });
        line(&mut svg, [LEFT, y, WIDTH - 30.0, y], colour);
        label(&mut svg, [LEFT - 8.0, y + 5.0], "end", text);
    }
    for (index, (name, findings)) in questions.iter().enumerate() {
        let left = LEFT + width * index as f64;
        label(&mut svg, [left + width / 2.0, BOTTOM + 70.0], "middle", name);
        let expected = format!("{:.1} expected", findings[0].expected);
        label(&mut svg, [left + width / 2.0, BOTTOM + 90.0], "middle", &expected);
        band(&mut svg, left + 10.0, width - 20.0, &findings[0]);
        for (place, finding) in findings.iter().enumerate() {
            bar(&mut svg, left + width * (place as f64 + 0.65) / 3.3, finding);
        }
    }
    svg.push_str("</svg>\n");
    svg
}

fn height(ratio: f64) -> f64 {
    BOTTOM - (BOTTOM - TOP) * ratio.clamp(0.0, MOST) / MOST
}

fn colour(noise: Noise) -> &'static str {
    match noise {
        Noise::NaiveF32 => "#d1495b",
        Noise::F32 => "#66a182",
        Noise::F64 => "#2e5eaa",
    }
}

fn legend(svg: &mut String) {
    for (index, noise) in Noise::ALL.into_iter().enumerate() {
        let x = LEFT + 230.0 * index as f64;
        _ = writeln!(svg, r##"<rect x="{x}" y="76" width="14" height="14" fill="{}"/>"##, colour(noise));
        label(svg, [x + 20.0, 88.0], "start", noise.name());
    }
    _ = writeln!(svg, r##"<rect x="{}" y="76" width="14" height="14" fill="#eee"/>"##, LEFT + 690.0);
    label(svg, [LEFT + 710.0, 88.0], "start", "chance (4σ)");
}

/// Where chance alone puts the ratio.
fn band(svg: &mut String, x: f64, width: f64, finding: &Finding) {
    let (top, bottom) = (height(1.0 + finding.band()), height(1.0 - finding.band()));
    let tall = bottom - top;
    _ = writeln!(
        svg,
        r##"<rect x="{x:.1}" y="{top:.1}" width="{width:.1}" height="{tall:.1}" fill="#888" fill-opacity="0.18"/>"##
    );
}

/// One ratio, its count beneath, and a mark where it fails.
fn bar(svg: &mut String, x: f64, finding: &Finding) {
    let (y, colour) = (height(finding.ratio()), colour(finding.noise));
    line(svg, [x, BOTTOM, x, y], colour);
    _ = writeln!(svg, r##"<circle cx="{x:.1}" cy="{y:.1}" r="7" fill="{colour}"/>"##);
    label(svg, [x, BOTTOM + 24.0], "middle", &finding.count.to_string());
    if finding.verdict == Verdict::Fails {
        label(svg, [x, BOTTOM + 44.0], "middle", "✗");
    }
}

fn line(svg: &mut String, [x1, y1, x2, y2]: [f64; 4], colour: &str) {
    _ = writeln!(
        svg,
        r##"<line x1="{x1:.1}" y1="{y1:.1}" x2="{x2:.1}" y2="{y2:.1}" stroke="{colour}" stroke-width="2"/>"##
    );
}

fn label(svg: &mut String, [x, y]: [f64; 2], anchor: &str, text: &str) {
    _ = writeln!(svg, r##"<text x="{x:.1}" y="{y:.1}" text-anchor="{anchor}">{text}</text>"##);
}
