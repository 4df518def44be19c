//! The names every page may use: they have a fixed id, so that the rules of the standard and selectors compare numbers.
//!
//! None is longer than 16 bytes: up to there the interner's key is the whole name.

use super::NameId;

macro_rules! names {
    ($($id:ident = $text:literal,)*) => {
        #[allow(non_camel_case_types, clippy::upper_case_acronyms, dead_code, reason = "places of a table")]
        #[repr(u32)]
        enum Place { $($id),* , END }
        $(#[allow(dead_code, reason = "pages use the names that no rule of ours does")] pub(crate) const $id: NameId = NameId(Place::$id as u32);)*
        /// How many names there are.
        pub(super) const COUNT: usize = Place::END as usize;
        /// The names by their id.
        pub(super) static TEXTS: [&str; COUNT] = [$($text),*];
    };
}

names! {
    A = "a", ABBR = "abbr", ADDRESS = "address", APPLET = "applet", AREA = "area", ARTICLE = "article",
    ASIDE = "aside", AUDIO = "audio", B = "b", BASE = "base", BASEFONT = "basefont", BDI = "bdi", BDO = "bdo",
    BGSOUND = "bgsound", BIG = "big", BLOCKQUOTE = "blockquote", BODY = "body", BR = "br", BUTTON = "button",
    CANVAS = "canvas", CAPTION = "caption", CENTER = "center", CITE = "cite", CODE = "code", COL = "col",
    COLGROUP = "colgroup", DATA = "data", DATALIST = "datalist", DD = "dd", DEL = "del", DETAILS = "details",
    DFN = "dfn", DIALOG = "dialog", DIR = "dir", DIV = "div", DL = "dl", DT = "dt", EM = "em", EMBED = "embed",
    FIELDSET = "fieldset", FIGCAPTION = "figcaption", FIGURE = "figure", FONT = "font", FOOTER = "footer",
    FORM = "form", FRAME = "frame", FRAMESET = "frameset", H1 = "h1", H2 = "h2", H3 = "h3", H4 = "h4", H5 = "h5",
    H6 = "h6", HEAD = "head", HEADER = "header", HGROUP = "hgroup", HR = "hr", HTML = "html", I = "i",
    IFRAME = "iframe", IMAGE = "image", IMG = "img", INPUT = "input", INS = "ins", KBD = "kbd", KEYGEN = "keygen",
    LABEL = "label", LEGEND = "legend", LI = "li", LINK = "link", LISTING = "listing", MAIN = "main", MAP = "map",
    MARK = "mark", MARQUEE = "marquee", MATH = "math", MENU = "menu", META = "meta", METER = "meter", NAV = "nav",
    NOBR = "nobr", NOEMBED = "noembed", NOFRAMES = "noframes", NOSCRIPT = "noscript", OBJECT = "object", OL = "ol",
    OPTGROUP = "optgroup", OPTION = "option", OUTPUT = "output", P = "p", PARAM = "param", PICTURE = "picture",
    PLAINTEXT = "plaintext", PRE = "pre", PROGRESS = "progress", Q = "q", RB = "rb", RP = "rp", RT = "rt",
    RTC = "rtc", RUBY = "ruby", S = "s", SAMP = "samp", SCRIPT = "script", SEARCH = "search", SECTION = "section",
    SELECT = "select", SLOT = "slot", SMALL = "small", SOURCE = "source", SPAN = "span", STRIKE = "strike",
    STRONG = "strong", STYLE = "style", SUB = "sub", SUMMARY = "summary", SUP = "sup", SVG = "svg", TABLE = "table",
    TBODY = "tbody", TD = "td", TEMPLATE = "template", TEXTAREA = "textarea", TFOOT = "tfoot", TH = "th",
    THEAD = "thead", TIME = "time", TITLE = "title", TR = "tr", TRACK = "track", TT = "tt", U = "u", UL = "ul",
    VAR = "var", VIDEO = "video", WBR = "wbr", XMP = "xmp", ISINDEX = "isindex", MI = "mi", MO = "mo", MN = "mn",
    MS = "ms", MTEXT = "mtext", MGLYPH = "mglyph", MALIGNMARK = "malignmark", ANNOTATION_XML = "annotation-xml",
    FOREIGNOBJECT = "foreignObject", DESC = "desc", G = "g", PATH = "path", HREF = "href", CLASS = "class", ID = "id",
    SRC = "src", ALT = "alt", TYPE = "type", NAME = "name", VALUE = "value", CONTENT = "content", REL = "rel",
    TARGET = "target", WIDTH = "width", HEIGHT = "height", LOADING = "loading", SRCSET = "srcset", LANG = "lang",
    PROPERTY = "property", CHARSET = "charset", COLOR = "color", FACE = "face", SIZE = "size", ENCODING = "encoding",
    DATETIME = "datetime", COLSPAN = "colspan", SCOPE = "scope", ROLE = "role", ITEMPROP = "itemprop",
    ARIA_LABEL = "aria-label", ARIA_HIDDEN = "aria-hidden", D = "d", FOR = "for", ACTION = "action",
    METHOD = "method", DEFINITIONURL = "definitionurl", DEFINITION_URL = "definitionURL",
    SELECTEDCONTENT = "selectedcontent", ACTUATE = "actuate", XMLNS = "xmlns", PROMPT = "prompt", CHECKED = "checked",
    DISABLED = "disabled", SELECTED = "selected", HREFLANG = "hreflang", ITEMTYPE = "itemtype",
    ITEMSCOPE = "itemscope", ITEMID = "itemid", ITEMREF = "itemref", DATA_ID = "data-id", DATA_SRC = "data-src",
    DATA_SKU = "data-sku", ONCLICK = "onclick", TABINDEX = "tabindex", MEDIA = "media", DOWNLOAD = "download",
    ROWSPAN = "rowspan", VALIGN = "valign", ALIGN = "align", BORDER = "border", CELLPADDING = "cellpadding",
    CELLSPACING = "cellspacing", BGCOLOR = "bgcolor", MAX = "max", MIN = "min", STEP = "step",
    PLACEHOLDER = "placeholder", REQUIRED = "required", READONLY = "readonly", MULTIPLE = "multiple",
    VIEW_BOX = "viewBox", XLINK_HREF = "xlink:href", XML_LANG = "xml:lang", XML_SPACE = "xml:space", FILL = "fill",
    STROKE = "stroke", STROKE_WIDTH = "stroke-width", STROKE_LINECAP = "stroke-linecap",
    STROKE_LINEJOIN = "stroke-linejoin", CIRCLE = "circle", RECT = "rect", LINE = "line", POLYLINE = "polyline",
    POLYGON = "polygon", TEXT = "text", TSPAN = "tspan", USE = "use", DEFS = "defs", CLIP_PATH = "clipPath",
    LINEAR_GRADIENT = "linearGradient", RADIAL_GRADIENT = "radialGradient", STOP = "stop", SYMBOL = "symbol",
    FILL_RULE = "fill-rule", CLIP_RULE = "clip-rule", TRANSFORM = "transform", X = "x", Y = "y", CX = "cx", CY = "cy",
    R = "r", RX = "rx", RY = "ry", X1 = "x1", X2 = "x2", Y1 = "y1", Y2 = "y2", POINTS = "points", OFFSET = "offset",
    DECODING = "decoding", CROSSORIGIN = "crossorigin", INTEGRITY = "integrity", ASYNC = "async", DEFER = "defer",
    HTTP_EQUIV = "http-equiv", SIZES = "sizes", HEADERS = "headers", OPEN = "open", START = "start",
    REVERSED = "reversed", ARIA_EXPANDED = "aria-expanded", ARIA_CONTROLS = "aria-controls",
    ARIA_DESCRIBEDBY = "aria-describedby", ARIA_LABELLEDBY = "aria-labelledby", MROW = "mrow", MSUP = "msup",
    MSUB = "msub", MFRAC = "mfrac", ENCTYPE = "enctype", ACCEPT = "accept", ACCEPT_CHARSET = "accept-charset",
    AUTOCOMPLETE = "autocomplete", AUTOFOCUS = "autofocus", ROWS = "rows", COLS = "cols", WRAP = "wrap",
    SRCDOC = "srcdoc", SANDBOX = "sandbox", ALLOW = "allow", ALLOWFULLSCREEN = "allowfullscreen",
    FRAMEBORDER = "frameborder", USEMAP = "usemap", ISMAP = "ismap", HIDDEN = "hidden", NONCE = "nonce", REV = "rev",
    VERSION = "version", SHAPE = "shape", COORDS = "coords", DATA_PRICE = "data-price",
    FETCHPRIORITY = "fetchpriority",
}
