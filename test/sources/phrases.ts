/** A phrase that readers have to decode, and what to write instead. */
export type Phrase = { readonly name: string; readonly pattern: RegExp; readonly instead: string };

/** The words table of CONTRIBUTING.md, as patterns that do not match ordinary English. */
export const phrases: readonly Phrase[] = [
  {
    name: "is no",
    pattern: /(?<!\b[Tt]here )\b(?:is|are|was|were) no (?!longer\b|more\b|other\b|less\b|way\b|\w+er than\b)/g,
    instead: 'not a …, unknown … ("there is no lease" is fine)',
  },
  { name: "whoever", pattern: /\bwho(?:m|se)?ever\b/gi, instead: "the caller, the holder, the reader" },
  { name: "anew", pattern: /\banew\b/gi, instead: "again" },
  {
    name: "so many",
    pattern: /\bso (?:many|often)\b(?! (?:as|that)\b)|\bfor so long\b(?! as\b)/gi,
    instead: "N, this many, as many as the limit says",
  },
  { name: "put into words", pattern: /\bput(?:s|ting)? (?:\w+ )?into words\b/gi, instead: "encode" },
  {
    name: "a look",
    pattern: /\b(?:a|each|every|one|no|another|next|first|last) look\b(?!-| at\b)/gi,
    instead: "a check, a poll, a GC",
  },
  { name: "behind --", pattern: /\bbehind `?--/gi, instead: "after `--`" },
  { name: "by halving", pattern: /\bby halving\b/gi, instead: "by binary search" },
  { name: "mends", pattern: /\bmend(?:s|ed|ing)?\b/gi, instead: "fix, correct, repair" },
  { name: "but not so", pattern: /\bbut not so\b/gi, instead: "its state does not allow this" },
  {
    name: "told",
    pattern: /\btold\b(?! (?:apart|otherwise|not to)\b)/gi,
    instead: "notified, refused, informed; or say who gets what",
  },
  {
    name: "Who",
    pattern:
      /(?:^|[.:;] )Who (?:asks|began|came|comes|created|does|had|has|holds|is not|joined|knows|made|needs|reads|sends|stands|uses|waits|wants)\b(?!.{0,80}\?)/g,
    instead: "the caller, the holder, waiters",
  },
  {
    name: "is not said to be",
    pattern: /\b(?:is|are|was|were) (?:not )?said to be\b/gi,
    instead: "must be, claims to be",
  },
  {
    name: "metaphor",
    pattern: /\b(?:doors?|desks?|shel(?:f|ves)|offices?|ghosts?|heirs?|(?:un)?haunt\w*)\b/gi,
    instead: "handler, service, queue, cache, late result, successor",
  },
];

/** Types named by a participle instead of by what they are, and words that the glossary of docs/rules.md replaces. */
export const bannedTypes =
  /\b(?:type|interface|class) (Asked|Told|Heard|Said|Shown|Known|Decided|Answered|Offered|Queried|Described|Held|Late|Party|Wish)\b/g;

/** File and folder names that say nothing about what is in them. */
export const bannedFileNames = /(?:^|\/|-)(?:utils?|helpers?|managers?|common)(?=[./-]|$)/;

/** Traces of one machine or one network. */
export const machineTraces =
  /(?<![\w.])\/(?:work|root|Users)\/\w|\/home\/(?!me\b|you\b|user\b|agent\b)\w+\/|\b(?:artifactory|verdaccio|nexus)\b|:\/\/(?:npm|registry|mirror|proxy)\.(?!npmjs\.org\b)[\w.-]+/i;
