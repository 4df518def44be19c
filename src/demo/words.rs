//! The words the shop is written with. All names are made up by combination; nobody here exists.

/// One shelf of the shop.
#[derive(Debug)]
pub(crate) struct Shelf {
    pub(crate) name: &'static str,
    pub(crate) slug: &'static str,
    pub(crate) blurb: &'static str,
    pub(crate) sort: Sort,
    /// What its books are about, as a noun phrase that can follow "about".
    pub(crate) topics: [&'static str; 8],
}

/// Which title patterns suit a shelf.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sort {
    Story,
    Fact,
    Verse,
}

const fn shelf(name: &'static str, slug: &'static str, sort: Sort, blurb: &'static str, topics: [&'static str; 8]) -> Shelf {
    Shelf { name, slug, blurb, sort, topics }
}

/// The shelves, in the order of the home page.
pub(crate) const SHELVES: [Shelf; 20] = [
    shelf("Literary Fiction", "literary-fiction", Sort::Story, "Novels that take their time and reward yours.", ["a family that stops speaking", "two sisters and one house", "a marriage at low tide", "the summer before a war", "a translator without a country", "an inheritance nobody wants", "a village losing its school", "a long friendship"]),
    shelf("Crime & Mystery", "crime-mystery", Sort::Story, "Locked rooms, loose ends and people who saw nothing.", ["a body in the boathouse", "a missing ledger", "an alibi that is too good", "a retired inspector", "a poisoned prize-giving", "a witness who cannot read", "a burglary in reverse", "the third letter"]),
    shelf("Science Fiction", "science-fiction", Sort::Story, "Near futures, far stars, awkward questions.", ["a station that answers back", "the last human navigator", "a colony without children", "an archive orbiting a dead sun", "a machine learning to lie", "a signal older than the sky", "a tax on memory", "the quiet evacuation of the Moon"]),
    shelf("Fantasy", "fantasy", Sort::Story, "Maps at the front, trouble in the middle.", ["a guild of weather-binders", "a dragon with debts", "a door under the market", "the youngest of nine witches", "a kingdom made of bells", "an oath sworn in sleep", "a river that changes its mind", "a thief of shadows"]),
    shelf("Historical Fiction", "historical-fiction", Sort::Story, "The past, told by people who had to live in it.", ["a salt trader and his daughter", "a siege seen from the kitchen", "a forger at court", "the winter the harbour froze", "a midwife on trial", "a map that started a war", "two clerks and a revolution", "a lighthouse under blockade"]),
    shelf("Romance", "romance", Sort::Story, "Meetings, misunderstandings, second chances.", ["a rented cottage and the wrong key", "rival bakers", "letters sent by mistake", "a wedding band without a singer", "a vet and a very old dog", "two people and one allotment", "a bookshop about to close", "the last ferry of the season"]),
    shelf("Thrillers", "thrillers", Sort::Story, "One more chapter, and then it is three in the morning.", ["a courier who opens the parcel", "a bank with no customers", "forty minutes without power", "an interpreter who heard too much", "a train that is not stopped", "a vanished pilot", "the wrong hostage", "a code written in chalk"]),
    shelf("Children’s Books", "childrens-books", Sort::Story, "For reading aloud, and for reading under the covers.", ["a hedgehog who delivers the post", "a boat made of umbrellas", "the girl who collected echoes", "a very small giant", "a school on a bus", "a fox with a library card", "the moon’s lost mitten", "a dinosaur at the dentist"]),
    shelf("Young Adult", "young-adult", Sort::Story, "First times, last chances, big feelings.", ["a band with one good song", "a summer job at the morgue", "twins who swap schools", "the night bus home", "a town without phones", "a runaway and a lorry driver", "an exam nobody passed", "a rooftop garden"]),
    shelf("Short Stories", "short-stories", Sort::Story, "Whole lives in a dozen pages.", ["neighbours and thin walls", "people waiting for trains", "small-town miracles", "things left in coats", "last days of summer jobs", "quarrels over hedges", "letters never posted", "hotel rooms"]),
    shelf("Poetry", "poetry", Sort::Verse, "Slim books with a long echo.", ["tides and timetables", "kitchens at night", "allotments", "northern light", "the names of winds", "grief and gardening", "motorways", "birds at the feeder"]),
    shelf("History", "history", Sort::Fact, "How we got here, with footnotes.", ["the northern salt roads", "canals and the people who dug them", "lighthouse keepers", "market towns", "the postal service", "forgotten parliaments", "shipwrecks", "the weaving trade"]),
    shelf("Biography", "biography", Sort::Fact, "Lives worth a second look.", ["a botanist and her rivals", "a clockmaker’s apprentice", "the woman who mapped the fens", "a radio engineer", "a travelling judge", "a painter of shop signs", "a bridge builder", "an island doctor"]),
    shelf("Science & Nature", "science-nature", Sort::Fact, "Beetles, black holes and everything between.", ["moss", "the life of rivers", "bird migration", "the weather", "deep soil", "tides", "the night sky", "hedgerows"]),
    shelf("Travel", "travel", Sort::Fact, "Slow journeys, good shoes.", ["walking the east coast", "night trains", "small islands", "mountain passes", "border towns", "river ferries", "desert roads", "the old pilgrim ways"]),
    shelf("Food & Drink", "food-drink", Sort::Fact, "Recipes tested in kitchens smaller than yours.", ["sourdough", "soups for every month", "preserving", "one-pot suppers", "the vegetable garden", "tea", "cheese at home", "picnics"]),
    shelf("Art & Design", "art-design", Sort::Fact, "To look at, and to look again.", ["lettering", "the colour blue", "paper", "posters", "chairs", "printmaking", "windows", "maps"]),
    shelf("Business", "business", Sort::Fact, "Work, money and the people in between.", ["small shops", "meetings", "fair pricing", "family firms", "negotiation", "logistics", "bookkeeping", "leaving well"]),
    shelf("Computing", "computing", Sort::Fact, "Programs, and the people who have to maintain them.", ["parsers", "databases", "networks", "old machines", "testing", "compilers", "queues", "error messages"]),
    shelf("Philosophy", "philosophy", Sort::Fact, "Difficult questions in plain words.", ["doubt", "attention", "promises", "ordinary language", "luck", "silence", "friendship", "being wrong"]),
];

/// How many of each hundred books a shelf gets beyond its first one. The sum is 80.
pub(crate) const SHELF_WEIGHTS: [u32; 20] = [9, 8, 7, 6, 6, 5, 5, 4, 4, 4, 2, 3, 3, 3, 3, 2, 2, 1, 2, 1];

pub(crate) const FIRST_NAMES: [&str; 56] = [
    "Adela", "Alaric", "Anneke", "Benedek", "Briony", "Calum", "Célestine", "Corin", "Dagny", "Delphine", "Edmund", "Elspeth", "Emrys", "Fenella", "Florian", "Greta", "Gwilym",
    "Hanne", "Hesper", "Idris", "Ilse", "Imogen", "Ivo", "Jago", "Jorun", "Katinka", "Kerensa", "Lachlan", "Leocadia", "Linus", "Lorcan", "Maeve", "Magnus", "Marit", "Merle",
    "Nerys", "Noël", "Oonagh", "Orla", "Osric", "Perpetua", "Quentin", "Ragna", "Renée", "Roderick", "Runa", "Sabine", "Saskia", "Senan", "Sunniva", "Tamsin", "Thaddeus", "Ulrike",
    "Verity", "Wilfred", "Zelda",
];

pub(crate) const LAST_NAMES: [&str; 64] = [
    "Abernethy", "Alderwick", "Ashgrove", "Barrowby", "Birchall", "Blackmoor", "Bramwell", "Brightwater", "Calloway", "Carrow", "Coldstream", "Copperthwaite", "Cranmere",
    "Dellaway", "Dunmore", "Eastlake", "Ellerby", "Fairweather", "Fennimore", "Fothergale", "Garside", "Glasswright", "Greenhalgh", "Hallam", "Harrowgate", "Hartsease",
    "Hollin", "Inchbold", "Jessamy", "Kestrel", "Kirkbride", "Larkspur", "Lindqvist", "Lockwood", "Marchbank", "Merriweather", "Moorcroft", "Nightingale", "Northcote",
    "Oakenshaw", "Ormerod", "Pembrey", "Penhallow", "Quillfeather", "Ravenscar", "Redfern", "Rookwood", "Saltmarsh", "Sandoval", "Seabright", "Silverthorne", "Stanhope",
    "Tarrant", "Thistlewood", "Thornbury", "Tolliver", "Underhill", "Vance", "Wainwright", "Westerly", "Whitlock", "Winterbourne", "Wolstenholme", "Yarrow",
];

pub(crate) const TOWNS: [&str; 24] = [
    "Harrow End", "Saltby", "Port Ellery", "Upper Wend", "Kestrel Bay", "Nether Ashby", "Coldwater", "Brannock", "St Orrin", "Millbeck", "Long Tarrow", "Easthaven", "Dunmere",
    "Fellgate", "Quayside Cross", "Marlow Reach", "Thornwick", "Little Sedge", "Aldermoor", "Whinfield", "Carrick Mouth", "Lantern Hill", "Ferry Combe", "Great Orme Lea",
];

pub(crate) const ADJECTIVES: [&str; 40] = [
    "Borrowed", "Bright", "Brittle", "Careless", "Crooked", "Distant", "Drowned", "Early", "Empty", "Faithful", "Foreign", "Forgotten", "Gentle", "Golden", "Hidden", "Hollow",
    "Honest", "Idle", "Last", "Late", "Little", "Lost", "Narrow", "Northern", "Ordinary", "Paper", "Patient", "Quiet", "Restless", "Salt", "Second", "Secret", "Silver", "Slow",
    "Stubborn", "Tidal", "Unfinished", "Unlikely", "Wild", "Winter",
];

pub(crate) const NOUNS: [&str; 48] = [
    "Almanac", "Anchor", "Apprentice", "Archive", "Atlas", "Bell", "Bridge", "Cartographer", "Chapel", "Clock", "Compass", "Courier", "Daughter", "Detour", "Echo", "Ferryman",
    "Field", "Garden", "Glasshouse", "Harbour", "Harvest", "Hour", "House", "Island", "Keeper", "Kitchen", "Lamp", "Ledger", "Letter", "Librarian", "Lighthouse", "Market",
    "Mirror", "Orchard", "Passenger", "Promise", "Quarry", "Reckoning", "River", "Season", "Shore", "Station", "Stranger", "Tide", "Visitor", "Widow", "Window", "Witness",
];

pub(crate) const PUBLISHERS: [&str; 10] =
    ["Saltmarsh Press", "Two Lanterns", "Fell & Tarrow", "Heron House", "The Quarto Room", "Millbeck Editions", "North Quay Books", "Paper Kite", "Ostler & Vane", "Lantern Hill Press"];

pub(crate) const LANGUAGES: [&str; 8] = ["English", "English", "English", "English", "English", "Français", "Español", "Português"];

pub(crate) const BINDINGS: [&str; 4] = ["Paperback", "Hardback", "Paperback with flaps", "Cloth-bound hardback"];

pub(crate) const MONTHS: [&str; 12] =
    ["January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November", "December"];

/// Openings of a description; `{}` is what the book is about.
pub(crate) const STORY_OPENINGS: [&str; 6] = [
    "It begins with {} and a promise made too quickly.",
    "Nobody in town wants to talk about {}, which is exactly why somebody should.",
    "A novel about {}, about weather, and about the price of keeping quiet.",
    "What starts as {} turns, chapter by chapter, into something much harder to put down.",
    "This is a book about {}, told by the one person who was not supposed to be there.",
    "Everyone remembers {} differently; this is the version that was never told.",
];

pub(crate) const FACT_OPENINGS: [&str; 6] = [
    "A generous and clear-eyed book about {}, written after ten years of looking closely.",
    "You may think you know all about {}. This book gently suggests otherwise.",
    "Part field guide, part memoir, this is the most readable account of {} we have on our shelves.",
    "From first principles to the latest disputes: everything that matters about {}, in twelve short chapters.",
    "There are many books about {}; few of them are this funny.",
    "An introduction to {} for readers who like to understand how things fit together.",
];

pub(crate) const VERSE_OPENINGS: [&str; 4] = [
    "Fifty-two poems about {}, one for each week of a difficult year.",
    "A first collection about {}, exact and unsentimental.",
    "These poems look at {} until it looks back.",
    "A long poem in nine parts about {}, with drawings by the author.",
];

pub(crate) const MIDDLES: [&str; 14] = [
    "The prose is unhurried, and the jokes arrive exactly when they are needed.",
    "Half of it takes place in a single afternoon; the other half takes forty years.",
    "Our staff argued about the ending for most of a lunch break.",
    "It is the sort of book that makes you miss your stop – twice, in one case.",
    "The middle chapters, set between two high tides, are as good as anything we read this year.",
    "Small details do the work here: a coat on the wrong hook, a light left on, a name misspelt on purpose.",
    "Readers of the author’s earlier work will recognise the café by the station and be glad to be back.",
    "There is a map, there are notes, and there is an index that rewards browsing.",
    "It asks for some patience in the opening pages and pays it back with interest.",
    "The author writes about work as few others do: with respect, and without romance.",
    "Some of the quieter scenes were written, we are told, on the backs of delivery notes.",
    "By the last third the threads are pulled so tight that you can hear them.",
    "Nothing is explained twice, and nothing that matters is left out.",
    "What looks like a digression in chapter two turns out to be the whole point.",
];

pub(crate) const ENDINGS: [&str; 8] = [
    "Warmly recommended to anyone who has ever waited for a letter.",
    "A book to lend, and then to buy again.",
    "This edition comes with a new afterword and a ribbon.",
    "Read it before somebody tells you how it ends.",
    "The ideal companion for a long journey and a short winter.",
    "We keep a copy behind the counter for difficult days.",
    "Printed on good paper, and priced so that you can give one away.",
    "It stays with you – that is the highest praise we have.",
];

pub(crate) const REVIEW_LINES: [&str; 14] = [
    "Bought it for the cover, stayed for the second chapter.",
    "My reading group could not agree on anything except that we were glad to have read it.",
    "A little long in the middle, but the last fifty pages are worth every minute.",
    "Arrived quickly and well packed. I have already lent it to my brother.",
    "Not what I expected, and better for it.",
    "I wanted more about the minor characters, especially the aunt.",
    "Clear, kind and never dull.",
    "The typesetting alone deserves a prize.",
    "I read it in one sitting, which my dinner did not survive.",
    "Good, though the previous one was sharper.",
    "Three people on the train asked me what I was laughing at.",
    "The notes at the end are a small book of their own.",
    "A present for my mother, who rang me at midnight to discuss it.",
    "Honest, odd and quietly brilliant.",
];

pub(crate) const BIO_LINES: [&str; 10] = [
    "Before writing full time, they repaired clocks, taught evening classes and once managed a car park for an entire week.",
    "The books have been read aloud on local radio and, on one occasion, on a delayed ferry.",
    "They write in the mornings and answer letters in the afternoons.",
    "Their notebooks fill eleven boxes, two of which are labelled “probably useful”.",
    "A long-standing quarrel with a neighbour about a pear tree appears, thinly disguised, in three of the books.",
    "They have never finished a crossword, and see no reason to start now.",
    "Critics have praised the dialogue; the author says it is all overheard.",
    "They share a house by the water with two cats and more bookshelves than walls.",
    "An early manuscript was lost on a bus and came back, corrected, by post.",
    "They are at work on something longer and refuse to say what it is.",
];
