//! Texts of many kinds.

/// The kind, a text of it, and whether the estimate may be several times too high: nobody fills a context with those.
pub(super) fn samples() -> Vec<(&'static str, String, bool)> {
    let random = |alphabet: &str, n: usize| -> String {
        let letters: Vec<char> = alphabet.chars().collect();
        let mut state = 0x2545_f491_4f6c_dd1d_u64;
        (0..n)
            .map(|_| {
                state ^= state << 13;
                state ^= state >> 7;
                state ^= state << 17;
                letters[(state >> 33) as usize % letters.len()]
            })
            .collect()
    };
    let small = "abcdefghijklmnopqrstuvwxyz";
    let base64 = format!("{small}{}0123456789+/", small.to_uppercase());
    let prose = |text: &str| text.to_owned();
    let texts = vec![
        (
            "english",
            prose(
                "The ship had been three days out of harbour when the weather turned. Nobody on deck said much about it; they had seen worse, and the captain, who rarely came up before breakfast, was already standing at the rail with his collar turned up. \"We'll be late,\" he said, to nobody in particular.",
            ),
        ),
        (
            "english chat",
            prose(
                "hey, can you remind me tomorrow at 9:30 to call mum? also what's the weather like in Lisbon rn, i'm thinking of flying out on friday lol. thx!! oh and did u see Sarah's msg?",
            ),
        ),
        (
            "german",
            prose(
                "Die Donaudampfschifffahrtsgesellschaft hatte für ihre Fahrgäste außergewöhnlich günstige Übernachtungsmöglichkeiten geschaffen. Straßenbahnhaltestellen, Geschwindigkeitsbegrenzungen und Rechtsschutzversicherungen prägten das Stadtbild; über allem lag die Müdigkeit eines späten Nachmittags im Frühling.",
            ),
        ),
        (
            "french",
            prose(
                "L'été dernier, nous étions allés jusqu'à la frontière où, dès l'aube, les pêcheurs réparaient leurs filets. « Ça ne mène à rien », répétait-il, déçu, en haussant les épaules.",
            ),
        ),
        (
            "polish",
            prose(
                "Zażółć gęślą jaźń. Wczoraj wieczorem przyszedł do mnie sąsiad i zapytał, czy mógłbym pożyczyć mu książkę o chrząszczach, które brzmią w trzcinie w Szczebrzeszynie.",
            ),
        ),
        (
            "turkish",
            prose(
                "Çocuklar okuldan döndüklerinde annelerinin hazırladığı böreği yediler; dışarıda yağmur yağıyor, rüzgâr ağaçların yapraklarını savuruyordu. Görüşmek üzere, kendinize iyi bakın.",
            ),
        ),
        (
            "vietnamese",
            prose(
                "Hôm nay trời đẹp quá, chúng tôi quyết định đi dạo quanh hồ và uống cà phê. Người bán hàng rong mỉm cười hỏi chúng tôi có muốn mua thêm bánh mì không.",
            ),
        ),
        (
            "russian",
            prose(
                "Вчера вечером мы долго гуляли по набережной и обсуждали планы на лето. Погода была прохладная, но безветренная, и никому не хотелось возвращаться домой.",
            ),
        ),
        (
            "ukrainian",
            prose(
                "Учора ввечері ми довго гуляли набережною й обговорювали плани на літо. Її усмішка нагадувала мені про ґанок бабусиної хати.",
            ),
        ),
        (
            "greek",
            prose(
                "Χθες το βράδυ περπατήσαμε πολλή ώρα στην παραλία και συζητήσαμε τα σχέδιά μας για το καλοκαίρι. Ο καιρός ήταν δροσερός.",
            ),
        ),
        (
            "hebrew",
            prose(
                "אתמול בערב טיילנו לאורך הטיילת ודיברנו על התוכניות לקיץ. מזג האוויר היה קריר, אבל אף אחד לא רצה לחזור הביתה. שָׁלוֹם עֲלֵיכֶם.",
            ),
        ),
        (
            "arabic",
            prose(
                "مساء أمس تمشينا طويلاً على الكورنيش وناقشنا خطط الصيف. كان الطقس بارداً، لكن لم يرغب أحد في العودة إلى المنزل. السَّلَامُ عَلَيْكُمْ.",
            ),
        ),
        (
            "persian",
            prose(
                "دیروز عصر مدت زیادی در ساحل قدم زدیم و دربارهٔ برنامه‌های تابستان صحبت کردیم. هوا خنک بود ولی هیچ‌کس نمی‌خواست به خانه برگردد.",
            ),
        ),
        (
            "hindi",
            prose(
                "कल शाम हम लोग बहुत देर तक नदी के किनारे टहलते रहे और गर्मियों की योजनाओं पर बात करते रहे। मौसम ठंडा था, पर कोई घर लौटना नहीं चाहता था।",
            ),
        ),
        ("tamil", prose("நேற்று மாலை நாங்கள் கடற்கரையில் நீண்ட நேரம் நடந்து கோடைகாலத் திட்டங்களைப் பற்றிப் பேசினோம்.")),
        (
            "thai",
            prose("เมื่อวานตอนเย็นพวกเราเดินเล่นริมทะเลเป็นเวลานานและคุยกันเรื่องแผนการสำหรับฤดูร้อน อากาศเย็นแต่ไม่มีใครอยากกลับบ้าน"),
        ),
        ("georgian", prose("გუშინ საღამოს დიდხანს ვსეირნობდით სანაპიროზე და ზაფხულის გეგმებზე ვსაუბრობდით.")),
        ("armenian", prose("Երեկ երեկոյան մենք երկար զբոսնում էինք ծովափին և քննարկում ամառային ծրագրերը։")),
        (
            "chinese",
            prose(
                "昨天晚上我们在海边散步了很久，讨论了夏天的计划。天气很凉爽，但谁也不想回家。他说：“明年我们再来吧，那时候孩子们都放假了。”",
            ),
        ),
        (
            "chinese traditional",
            prose("昨天晚上我們在海邊散步了很久，討論了夏天的計劃。天氣很涼爽，但誰也不想回家。龍龜鬱籲灩驫麤。"),
        ),
        (
            "japanese",
            prose(
                "昨日の夕方、私たちは海辺を長い間散歩して、夏の計画について話し合いました。天気は涼しかったけれど、誰も家に帰りたくありませんでした。コーヒーをもう一杯いかがですか？",
            ),
        ),
        (
            "korean",
            prose(
                "어제 저녁 우리는 바닷가를 오랫동안 산책하며 여름 계획에 대해 이야기했습니다. 날씨는 쌀쌀했지만 아무도 집에 돌아가고 싶어 하지 않았습니다.",
            ),
        ),
        ("emoji", prose("😀😂🤣🥹🙏👍🏽👩‍👩‍👧‍👦🏴󠁧󠁢󠁳󠁣󠁴󠁿🇩🇪🇯🇵❤️‍🔥✨🎉🫠🦩🧑🏿‍🚀⌚️☎️™️")),
        ("symbols", prose("→ ← ⇒ ≤ ≥ ≠ ∞ ∑ √ ┌──┬──┐ │ █▓▒░ ♠ ♣ ★ ☆ © ® ° ± × ÷ € £ ¥ … – — “quotes” ‘single’ • ½")),
        ("math letters", prose("𝕳𝖊𝖑𝖑𝖔 𝓌ℴ𝓇𝓁𝒹 𝟘𝟙𝟚 𠀀𠀁𠀂 Ｆｕｌｌ　ｗｉｄｔｈ １２３")),
        (
            "rust",
            prose(
                "/// Bytes per token.\npub(super) fn first_kept(messages: &[Message], budget: usize) -> usize {\n    let mut used = 0_usize;\n    for (index, message) in messages.iter().enumerate().rev() {\n        used = used.saturating_add(message.content.iter().map(weight).sum());\n        if used > budget && kept.is_some() {\n            break;\n        }\n    }\n    kept.unwrap_or(0)\n}\n",
            ),
        ),
        (
            "python",
            prose(
                "def f(x: int) -> dict[str, list[int]]:\n\tfor i in range(10):\n\t\tif i % 2 == 0 and x**2 >= 17:\n\t\t\treturn {'k': [i, x], \"__init__\": None}\n\traise ValueError(f'bad {x!r}')\n",
            ),
        ),
        (
            "javascript minified",
            prose(
                "!function(e,t){\"object\"==typeof exports&&\"undefined\"!=typeof module?module.exports=t():(e=e||self).Q=t()}(this,function(){var e=[],t=e.slice;return{a:t,b:function(e){return e&&e.nodeType===1||e===window}}});",
            ),
        ),
        (
            "json",
            prose(
                r#"{"id":"msg_01XFDUDYJgAACzvnptvVoYEL","type":"message","items":[{"sku":"A-1004-XZ","qty":12,"price":19.99,"tags":["new","sale"],"at":"2026-11-30T07:28:00Z"},{"sku":"B-77","qty":0,"price":null,"tags":[],"at":null}],"ok":true}"#,
            ),
        ),
        (
            "json indented",
            prose(
                "{\n  \"name\": \"turnlock\",\n  \"nested\": {\n    \"list\": [\n      1,\n      2.5,\n      -3e10\n    ],\n    \"flag\": false\n  }\n}\n",
            ),
        ),
        (
            "html",
            prose(
                "<div class=\"card card--wide\" data-id=\"42\"><a href=\"https://example.org/a?b=c&amp;d=%20e#f\">Read&nbsp;more</a><br/></div>",
            ),
        ),
        (
            "xml caps",
            prose(
                "THE QUICK BROWN FOX JUMPS OVER THE LAZY DOG. WARNING: DO NOT OPEN. SQL: SELECT NAME FROM USERS WHERE ID IN (SELECT USER_ID FROM ORDERS);",
            ),
        ),
        (
            "urls and paths",
            prose(
                "https://eu-central-1.console.aws.amazon.com/lambda/home?region=eu-central-1#/functions/turnlock-agent /usr/local/lib/python3.12/site-packages/numpy/core/_multiarray_umath.cpython-312-x86_64-linux-gnu.so",
            ),
        ),
        (
            "log lines",
            prose(
                "2026-12-01T07:36:10.123Z  INFO turnlock::agent: event_id=ev_3f9a1c77 session=telegram:main:-100123 duration_ms=1523\n2026-12-01T07:36:11.004Z ERROR 0x7ffd5e8c connection reset by peer (os error 104)\n",
            ),
        ),
        ("digits", random("0123456789", 600)),
        ("numbers", prose("3.14159 2,718,281 +49 170 1234567 1000001 -17 0.5% 12:30:45 192.168.0.1 1e-9 42")),
        ("csv", prose("id,name,amount\n1001,Ann Ames,12.50\n1002,Bob Lee,7.00\n1003,Zoë,1999.99\n")),
        ("base64", random(&base64, 600)),
        ("hex", random("0123456789abcdef", 600)),
        (
            "uuid",
            prose(
                "550e8400-e29b-41d4-a716-446655440000 f47ac10b-58cc-4372-a567-0e02b2c3d479 6ba7b810-9dad-11d1-80b4-00c04fd430c8",
            ),
        ),
        ("random small letters", random(small, 600)),
        ("random capitals", random(&small.to_uppercase(), 600)),
        ("random signs", random("!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~", 600)),
        ("random ascii", random(&format!("{base64} \n!\"#$%&'()*,-.:;<=>?@[\\]^_`{{|}}~"), 600)),
        ("spaces", " ".repeat(300)),
        ("newlines", "\n".repeat(300)),
        ("tabs and spaces", "\t \n  \t\t\n \r\n".repeat(40)),
        ("single letters", "a b c d e f g h i j k l m n o p q r s t u v w x y z ".repeat(4)),
        ("one letter", "a".repeat(300)),
        (
            "markdown table",
            prose(
                "| Name | Qty | Price |\n|------|----:|:-----:|\n| **Bolt** | 12 | `1.50` |\n\n> quoted *text* with [a link](https://x.y)\n- [ ] todo\n",
            ),
        ),
    ];
    let wasteful = ["spaces", "newlines", "one letter"];
    texts.into_iter().map(|(name, text)| (name, text, wasteful.contains(&name))).collect()
}
