//! JSON for people: what fits stands on one line, so that a step can be read at a glance. One text for one value.

const WIDTH: usize = 120;

/// The same JSON, laid out; ends with a newline. `json` must be compact, as `serde_json::to_string` writes it: then the
/// order of its fields stays, which a parsed value would lose.
pub fn pretty(json: &str) -> String {
    let mut out = String::with_capacity(2 * json.len());
    let end = value(json, 0, 0, true, &mut out);
    debug_assert_eq!(end, json.len(), "one whole value");
    out.push('\n');
    out
}

/// Writes the value at `at` and answers where it ends. `lead` is what already stands on the line.
fn value(json: &str, at: usize, lead: usize, is_top: bool, out: &mut String) -> usize {
    let end = end_of(json, at);
    let text = &json[at..end];
    if !text.starts_with(['{', '[']) {
        out.push_str(text);
        return end;
    }
    // One column is left for the comma that may follow.
    let fits = |flat: &String| lead + flat.chars().count() < WIDTH;
    if let Some(flat) = (!is_top && text.len() < WIDTH).then(|| on_one_line(text)).filter(fits) {
        out.push_str(&flat);
        return end;
    }
    let indent = out.rsplit('\n').next().map_or(0, |line| line.len() - line.trim_start().len()) + 2;
    out.push_str(&text[..1]);
    let mut at = at + 1;
    while at < end - 1 {
        out.push('\n');
        out.extend(std::iter::repeat_n(' ', indent));
        let mut lead = indent;
        if text.starts_with('{') {
            let key = &json[at..end_of(json, at)];
            out.push_str(key);
            out.push_str(": ");
            lead += key.chars().count() + 2;
            at += key.len() + 1;
        }
        at = value(json, at, lead, false, out);
        if json[at..].starts_with(',') {
            out.push(',');
            at += 1;
        }
    }
    out.push('\n');
    out.extend(std::iter::repeat_n(' ', indent - 2));
    out.push_str(&json[end - 1..end]);
    end
}

/// Where the value that starts at `at` ends.
fn end_of(json: &str, at: usize) -> usize {
    let (mut depth, mut in_text, mut escaped) = (0_usize, false, false);
    for (n, byte) in json.bytes().enumerate().skip(at) {
        if in_text {
            match byte {
                _ if escaped => escaped = false,
                b'\\' => escaped = true,
                b'"' if depth == 0 => return n + 1,
                b'"' => in_text = false,
                _ => {}
            }
            continue;
        }
        match byte {
            b'"' => in_text = true,
            b'{' | b'[' => depth += 1,
            b'}' | b']' if depth == 1 => return n + 1,
            b'}' | b']' if depth > 1 => depth -= 1,
            b',' | b':' | b'}' | b']' if depth == 0 => return n,
            _ => {}
        }
    }
    json.len()
}

/// `{ "a": [1, 2] }`: braces with room inside, brackets without.
fn on_one_line(json: &str) -> String {
    let mut flat = String::with_capacity(json.len() + json.len() / 4);
    let (mut in_text, mut escaped, mut last) = (false, false, ' ');
    for c in json.chars() {
        if !in_text && last == '{' && c != '}' {
            flat.push(' ');
        }
        match c {
            _ if in_text => {
                in_text = escaped || c != '"';
                escaped = !escaped && c == '\\';
                flat.push(c);
            }
            '"' => {
                in_text = true;
                flat.push(c);
            }
            ',' | ':' => flat.extend([c, ' ']),
            '}' if last != '{' => flat.push_str(" }"),
            _ => flat.push(c),
        }
        last = c;
    }
    flat
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_values_are_wrapped() {
        assert_eq!(pretty("{}"), "{\n}\n");
        assert_eq!(
            pretty(r#"{"a":{"b":[1,2],"c":{}},"d":"x, {y: \"z\" \\","e":null}"#),
            "{\n  \"a\": { \"b\": [1, 2], \"c\": {} },\n  \"d\": \"x, {y: \\\"z\\\" \\\\\",\n  \"e\": null\n}\n"
        );
        let long = "x".repeat(100);
        assert_eq!(
            pretty(&format!(r#"{{"a":[{{"b":"{long}","c":[{{}}]}}]}}"#)),
            format!("{{\n  \"a\": [\n    {{ \"b\": \"{long}\", \"c\": [{{}}] }}\n  ]\n}}\n").replace(
                &format!("    {{ \"b\": \"{long}\", \"c\": [{{}}] }}"),
                &format!("    {{\n      \"b\": \"{long}\",\n      \"c\": [{{}}]\n    }}")
            )
        );
    }

    #[test]
    fn layout_keeps_values() {
        let long = "é\\\"{".repeat(40);
        let value = serde_json::json!({ "a": [1, { "b": long, "c": [[], {}, null, true, -1.5e3] }], "d": {}, "e": "" });
        let text = pretty(&serde_json::to_string(&value).unwrap());
        assert_eq!(serde_json::from_str::<serde_json::Value>(&text).unwrap(), value);
        assert!(text.lines().count() > 5);
    }
}
