use proptest::prelude::*;

use super::*;

/// Secrets that nobody issued, put together so that no scanner of repositories takes them for real ones.
fn samples() -> Vec<String> {
    let letters = "aB3dE6gH9jK2mN5pQ8sT1vW4yZ7bC0eF3hI6kL9nO2qR5";
    vec![
        format!("AKIA{}", "IOSFODNN7EXAMPLE"),
        format!("ASIA{}", "IOSFODNN7EXAMPLE"),
        format!("xoxb-{}-{}", "1234567890", &letters[..24]),
        format!("xapp-1-{}", &letters[..24]),
        format!("1234567890:{}", &letters[..35]),
        format!("sk-{}", &letters[..40]),
        format!("sk-proj-{}_-x", &letters[..40]),
        format!("ghp_{}", &letters[..36]),
        format!("github_pat_{}_{}", &letters[..22], &letters[..30]),
        format!("eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.{}", &letters[..43]),
        format!("-----BEGIN RSA PRIVATE KEY-----\n{}\n-----END RSA PRIVATE KEY-----", &letters[..40]),
    ]
}

#[test]
fn every_known_shape_is_removed_wherever_it_stands() {
    for secret in samples() {
        for (before, after) in [
            ("", ""),
            ("key=", "\n"),
            ("(", ")."),
            ("\"", "\""),
            ("日本語", "です"),
            ("a ", " b"),
            ("\\n", "\\n"),
            ("%3D", "%0A"),
        ] {
            assert_eq!(mask(&format!("{before}{secret}{after}")), format!("{before}{REMOVED}{after}"));
        }
    }
    let bot = samples().swap_remove(4);
    let url = format!("https://api.telegram.org/bot{bot}/getMe");
    assert_eq!(mask(&url), format!("https://api.telegram.org/bot{REMOVED}/getMe"));
    assert_eq!(mask("Authorization: Bearer abc123def456ghi789jkl0=="), format!("Authorization: Bearer {REMOVED}"));
}

#[test]
fn the_secret_of_an_aws_key_is_removed_beside_it_alone() {
    let (key, secret) = (samples().swap_remove(0), "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY");
    let text = format!("aws_access_key_id = {key}\naws_secret_access_key = {secret}\n");
    assert_eq!(mask(&text), format!("aws_access_key_id = {REMOVED}\naws_secret_access_key = {REMOVED}\n"));
    assert_eq!(mask(&format!("{secret},{key}")), format!("{REMOVED},{REMOVED}"));
    assert_eq!(mask(secret), secret, "alone it may be anything");
}

#[test]
fn what_is_no_secret_stays() {
    let sha = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08";
    let base64 = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
    for text in [
        "The bearer of this letter is authorised. Bearer authentication is described in RFC 6750.",
        "Send `Authorization: Bearer YOUR_ACCESS_TOKEN_GOES_HERE`.",
        "3f2504e0-4f89-11d3-9a0c-0305e82c3301",
        "at 12:30:45, 1234567890:short, 10.0.0.1:8080, [::1]:443",
        "class=\"sk-folding-cube sk-circle-fade-dot-12-long-enough-name\"",
        "task-1234567890ABCDEFGHIJKL risk-AND-2024-reward-MANAGEMENT",
        "AKIA is what they begin with; AKIAIOSFODNN7 is too short",
        "eyJ.eyJ.eyJ and eyJhbGciOiJIUzI1NiJ9 alone",
        "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----",
        "ghp_ is a prefix, xoxb-your-token-goes-here-please is a placeholder",
        "fn mask(text: &str) -> Cow<'_, str> { text.into() }",
        "https://example.org/a?b=c:d#e 他说：你好 שלום",
        sha,
        base64,
    ] {
        assert!(matches!(mask(text), Cow::Borrowed(_)), "{text}: {}", mask(text));
    }
}

#[test]
fn a_secret_between_underscores_and_hyphens_is_one() {
    let samples = samples();
    for secret in [&samples[0], &samples[4], &samples[7]] {
        for (before, after) in [("_", "_"), ("__", "__"), ("", "-"), ("", "_"), ("\\\\n", "-")] {
            assert_eq!(mask(&format!("{before}{secret}{after}")), format!("{before}{REMOVED}{after}"));
        }
    }
}

#[test]
fn a_private_key_without_an_end_ends_where_no_key_goes_on() {
    let line = "MIIEpAIBAAKCAQEA1234567890abcdefghijklmnopqrstuvwxyz+/ABCDEFGHIJ";
    let begin = "-----BEGIN RSA PRIVATE KEY-----";
    for text in [
        format!("Your file must begin with `{begin}`. Then do what the next section of the manual describes."),
        format!("{begin}\nand then the key, line by line, and nothing else in that file.\n"),
        format!("It begins with {begin} and ends with {} as usual.", begin.replace("BEGIN", "END")),
        format!("{begin}\nMII"),
    ] {
        assert_eq!(mask(&text), text);
    }
    for (key, rest) in [
        (format!("{begin}\n{line}\n{line}"), ""),
        (format!("{begin}\n{line}\n{line}\nabc=="), "\n\nThen do the next thing."),
        (format!("{begin}\n{line}"), "\nThen do the next thing."),
        (format!("{begin}\\n{line}\\n{line}"), "\", \"type\": \"service_account\"}"),
        (format!("{begin}\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,0123456789ABCDEF\n\n{line}"), ": end"),
    ] {
        assert_eq!(mask(&format!("{key}{rest}")), format!("{REMOVED}{rest}"), "{key}");
    }
}

#[test]
fn a_text_that_goes_on_shows_no_part_of_a_secret() {
    // What stands in front, wherever it is no part of a token itself.
    let fronts =
        ["Here: ", "token=", "https://x/?k=", "id:", "\"", "a/", "GITHUB_TOKEN=", "{\"log\":\"x\\n", "_", "k%3D"];
    for secret in samples() {
        let is_bot = secret.starts_with("1234567890:");
        let bots = ["https://10.0.0.1/bot", "BOT1="].iter().filter(|_| is_bot);
        for front in fronts.iter().chain(bots) {
            let text = format!("{front}{secret}");
            for end in front.len()..=text.len() {
                let shown = mask_unfinished(&text[..end]);
                let leaked = shown.strip_prefix(front).unwrap_or_default();
                let is_harmless = leaked.len() <= 11 || "-----BEGIN RSA PRIVATE KEY-----".starts_with(leaked);
                assert!(is_harmless || leaked == REMOVED, "{}: {shown}", &text[..end]);
            }
            assert_eq!(mask_unfinished(&format!("{text} and on.")), format!("{front}{REMOVED} and on."));
        }
    }
    assert_eq!(mask_unfinished("Bearer abc1"), "Bearer ");
    assert_eq!(mask_unfinished("See https://example.org/a"), "See https://example.org/a");
    assert_eq!(mask_unfinished("Ünï"), "Ünï");
    let prose = "begin with `-----BEGIN PRIVATE KEY-----`. Then";
    assert_eq!(mask_unfinished(prose), prose, "what is no key holds nothing back");
}

#[test]
fn the_secret_of_an_aws_key_is_held_back_while_it_is_written() {
    let (key, secret) = (samples().swap_remove(0), "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY");
    for between in [",", "\naws_secret_access_key = ", "\",\"secret\":\"", "\\nsecret=", "&s=", ": "] {
        let text = format!("{key}{between}{secret}");
        for end in key.len() + between.len()..=text.len() {
            let shown = mask_unfinished(&text[..end]).into_owned();
            assert_eq!(shown, format!("{REMOVED}{between}"), "{}", &text[..end]);
        }
        assert_eq!(mask_unfinished(&format!("{text}.")), format!("{REMOVED}{between}{REMOVED}."));
    }
    // Its own key holds nothing back that is complete before it.
    assert_eq!(mask_unfinished(&format!("{secret},{key}")), format!("{REMOVED},"));
}

#[test]
fn hostile_text_takes_no_longer_than_other_text() {
    for piece in [
        "eyJ.",
        "eyJa.eyJa.",
        "-----BEGIN PRIVATE KEY----- ",
        "-----BEGIN ",
        "AKIA",
        "bearer ",
        "12345678:",
        "sk-A1",
        "sk-_",
        "eyJ_",
        "ghp_",
        "_AKIA",
        "-----BEGIN PRIVATE KEY-----abc\n",
    ] {
        let text = piece.repeat(400_000 / piece.len());
        // It ends: anything worse than linear would take minutes here.
        drop(mask(&text));
        drop(mask_unfinished(&text));
    }
    let keys = format!("{} ", samples().swap_remove(0)).repeat(10_000);
    assert_eq!(mask(&keys), format!("{REMOVED} ").repeat(10_000));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn masking_settles_at_once(text in "(AKIA|eyJ|sk-|ghp_|-----BEGIN PRIVATE KEY-----|_|12345678:|Bearer |[A-Z0-9]{16}|[a-z0-9]{36}|[a-z0-9:.]{1,40}|é|\n| ){0,20}") {
        let once = mask(&text).into_owned();
        prop_assert!(matches!(mask(&once), Cow::Borrowed(_)), "{once}");
        let _ = mask_unfinished(&text);
    }
}
