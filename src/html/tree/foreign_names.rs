//! The letter case of SVG: the tokenizer gives names in lower case, and some of SVG's are not (WHATWG HTML 13.2.6.5,
//! 13.2.6.1).
//!
//! Tables are sorted by the name in lower case.

use std::cmp::Ordering;

/// 13.2.6.5, "any other start tag": elements of SVG.
static SVG_TAGS: [&str; 37] = [
    "altGlyph",
    "altGlyphDef",
    "altGlyphItem",
    "animateColor",
    "animateMotion",
    "animateTransform",
    "clipPath",
    "feBlend",
    "feColorMatrix",
    "feComponentTransfer",
    "feComposite",
    "feConvolveMatrix",
    "feDiffuseLighting",
    "feDisplacementMap",
    "feDistantLight",
    "feDropShadow",
    "feFlood",
    "feFuncA",
    "feFuncB",
    "feFuncG",
    "feFuncR",
    "feGaussianBlur",
    "feImage",
    "feMerge",
    "feMergeNode",
    "feMorphology",
    "feOffset",
    "fePointLight",
    "feSpecularLighting",
    "feSpotLight",
    "feTile",
    "feTurbulence",
    "foreignObject",
    "glyphRef",
    "linearGradient",
    "radialGradient",
    "textPath",
];

/// 13.2.6.1, "adjust SVG attributes".
static SVG_ATTRIBUTES: [&str; 58] = [
    "attributeName",
    "attributeType",
    "baseFrequency",
    "baseProfile",
    "calcMode",
    "clipPathUnits",
    "diffuseConstant",
    "edgeMode",
    "filterUnits",
    "glyphRef",
    "gradientTransform",
    "gradientUnits",
    "kernelMatrix",
    "kernelUnitLength",
    "keyPoints",
    "keySplines",
    "keyTimes",
    "lengthAdjust",
    "limitingConeAngle",
    "markerHeight",
    "markerUnits",
    "markerWidth",
    "maskContentUnits",
    "maskUnits",
    "numOctaves",
    "pathLength",
    "patternContentUnits",
    "patternTransform",
    "patternUnits",
    "pointsAtX",
    "pointsAtY",
    "pointsAtZ",
    "preserveAlpha",
    "preserveAspectRatio",
    "primitiveUnits",
    "refX",
    "refY",
    "repeatCount",
    "repeatDur",
    "requiredExtensions",
    "requiredFeatures",
    "specularConstant",
    "specularExponent",
    "spreadMethod",
    "startOffset",
    "stdDeviation",
    "stitchTiles",
    "surfaceScale",
    "systemLanguage",
    "tableValues",
    "targetX",
    "targetY",
    "textLength",
    "viewBox",
    "viewTarget",
    "xChannelSelector",
    "yChannelSelector",
    "zoomAndPan",
];

/// The name of an SVG element as it is to be, if that is not the one in lower case.
pub(super) fn svg_tag(lower: &str) -> Option<&'static str> {
    find(&SVG_TAGS, lower)
}

/// The name of an attribute of SVG as it is to be, if that is not the one in lower case.
pub(super) fn svg_attribute(lower: &str) -> Option<&'static str> {
    find(&SVG_ATTRIBUTES, lower)
}

fn find(names: &[&'static str], lower: &str) -> Option<&'static str> {
    let place = names.binary_search_by(|name| compare(name, lower)).ok()?;
    names.get(place).copied()
}

fn compare(name: &str, lower: &str) -> Ordering {
    name.bytes().map(|byte| byte.to_ascii_lowercase()).cmp(lower.bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_found_by_its_lower_case() {
        for (names, get) in [(&SVG_TAGS[..], svg_tag as fn(&str) -> Option<&'static str>), (&SVG_ATTRIBUTES[..], svg_attribute)] {
            for name in names {
                assert_eq!(get(&name.to_ascii_lowercase()), Some(*name));
                assert_eq!(get(name), None, "only lower case is looked up");
            }
        }
        assert_eq!(svg_tag("circle"), None);
        assert_eq!(svg_tag(""), None);
        assert_eq!(svg_attribute("zzz"), None);
    }
}
