// What the search of the book looks through and how it ranks. TypeDoc looks up every word anywhere within other words,
// so the "do" and "a" of a question match everything, and members of types come before the guide that answers.

/** How much a match counts by where it is. */
export const WEIGHTS = { name: 10, answers: 8, headings: 10, comment: 1, document: 1 };
/** How much a page counts by its group. Guides answer questions; decisions and properties of types seldom do. */
export const BOOSTS = {
  Guide: 4,
  Examples: 2,
  Reference: 2,
  Runbooks: 2,
  Decisions: 0.5,
  Project: 0.5,
  Properties: 0.3,
};

/** Returns what is searched of a page of Markdown beside its name. */
export function fieldsOf(text) {
  const document = text.replaceAll(/\]\([^)]*\)/g, ']');
  const prose = document.replaceAll(/^```[\s\S]*?^```/gm, '');

  // The first cell of a row names a setting, an event or a metric.
  const headings = [...prose.matchAll(/^(?:##+ |\| `)(.+?)(?:$|`)/gm)].map(([, heading]) => heading).join('\n');

  return { document, headings };
}

/** Returns what the first page says in the lines that link to a page: the questions that it answers. */
export function answersOf(path, first) {
  const lines = first.split('\n').filter((line) => line.includes(`](${path}`));

  return lines.join('\n').replaceAll(/\]\([^)]*\)/g, ']');
}

/** Returns the code of TypeDoc's page with this module's ranking. @throws Error if the code is not as expected */
export function withRanking(code) {
  const ranking = /let a=i\.split\(" "\)\.map\(c=>c\.length\?`\*\$\{c\}\*`:""\)\.join\(" "\);s=r\.index\.search\(a\)/;
  if (!ranking.test(code)) throw new Error('the search of this TypeDoc is not the one that search.mjs replaces');

  return code.replace(ranking, () => `s=(${find})(r.index,i)`);
}

/** Runs in the page, so it refers to nothing outside. Returns lunr's results with scores of its own. */
function find(index, text) {
  const ignored = new Set(
    (
      'a about am an and any are as at be by can do does for from get has have how i if in into is it its me my need of ' +
      'on or our out should so than that the their them there these they this to up use was we what when where which who ' +
      'why will with without you your'
    ).split(' '),
  );
  const all = text.toLowerCase().match(/[\p{L}\p{N}@_./:-]*[\p{L}\p{N}]/gu) ?? [];
  const telling = all.filter((word) => !ignored.has(word));
  const words = telling.length > 0 ? telling : all;
  // Without any, lunr returns every page.
  if (words.length === 0) return [];
  // "mute", "muted" and "muting" are one word to those who search.
  const stems = words.map((word) => (word.length > 3 ? word.replace(/(?:ings?|ers?|ed|es|e|s)$/, '') : word));
  const [trailing, both] = [2, 3];
  const found = index.query((query) => {
    words.forEach((word, i) => {
      query.term(word, { boost: 10 });
      query.term(stems[i], { wildcard: trailing, boost: 4 });
      if (word.length > 2) query.term(word, { wildcard: both, boost: 0.1 });
    });
  });
  for (const result of found) {
    const terms = Object.keys(result.matchData.metadata);
    const matched = stems.filter((stem) => terms.some((term) => term.includes(stem))).length;
    result.score *= (matched / stems.length) ** 2;
  }

  return found;
}
