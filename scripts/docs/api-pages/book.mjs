// `npm run book [folder]`: writes the pages of docs and of the published packages as a static site with a search that
// needs no server. Fails when a link leads nowhere.
import { readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join, relative, resolve, sep } from 'node:path';
import { Converter, IndexEvent, KindRouter, PageEvent } from 'typedoc';
import { answersOf, BOOSTS, fieldsOf, WEIGHTS, withRanking } from './search.mjs';
import { refuseForeign, root, writeSite } from './site.mjs';

/** The folders below docs, with their headings in the sidebar. */
const PARTS = {
  guide: 'Guide',
  examples: 'Examples',
  reference: 'Reference',
  runbooks: 'Runbooks',
  decisions: 'Decisions',
};
const PROJECT = 'Project';
/** Languages of code blocks. TypeDoc fails on any other. */
const LANGUAGES =
  'console css diff erlang html ini javascript json jsx nginx protobuf python shellscript tsx typescript yaml';
const FIRST = join('docs', 'README.md');

const [chosen = join(root, 'dist', 'book')] = process.argv.slice(2);
const folder = resolve(chosen);
/** Becomes the book once it is complete: until then a node serves the former one. */
const draft = `${folder}.draft`;
const first = readFileSync(join(root, FIRST), 'utf8');

/** Returns the pages: first those linked from the first page, in its order, then the others by name. */
function pages() {
  const linked = [...first.matchAll(/\]\(([^)#]+\.md)/g)].map(([, link]) => join('docs', link));
  const others = Object.keys(PARTS).flatMap((part) => pagesBelow(join('docs', part)));

  return [...new Set([...linked, ...others])].filter((page) => page !== FIRST);
}

/** An example is a separate project: only its README belongs to the book. */
function pagesBelow(path) {
  const entries = readdirSync(join(root, path), { withFileTypes: true });
  const own = entries.filter((entry) => entry.isFile() && entry.name.endsWith('.md'));
  const examples = entries.filter((entry) => entry.isDirectory());

  return [
    ...own.map(({ name }) => join(path, name)),
    ...examples.map(({ name }) => join(path, name, 'README.md')),
  ].toSorted();
}

/** A page's address is its path, which survives a change of its title. */
class PathRouter extends KindRouter {
  getIdealBaseName(reflection) {
    return reflection.isDocument() ? reflection.frontmatter.path : super.getIdealBaseName(reflection);
  }
}

/** TypeDoc names a document after its file; the sidebar shows its heading, below that of its part. */
function nameAfterHeading(_context, page) {
  const path = page.name.replace(/^docs\//, '');
  const text = page.content.map((part) => part.text).join('');
  page.name = /^# (.+)$/m.exec(text)?.[1] ?? path;
  page.frontmatter = { path, group: PARTS[path.split('/')[0]] ?? PROJECT };
}

/** Every page's inline script, which sets its colours; a content security policy would refuse it. */
let inline;
function moveInlineScript(page) {
  page.contents = page.contents.replace(/<script>([^<]*)<\/script>/, (_, script) => {
    inline = script;
    return `<script src="${page.contents.match(/data-base="([^"]*)"/)[1]}assets/theme.js"></script>`;
  });
}

function addSearchFields(index) {
  Object.assign(index.searchFieldWeights, WEIGHTS);
  for (const [i, reflection] of index.searchResults.entries()) {
    if (!reflection.isDocument()) continue;
    const { path } = reflection.frontmatter;
    const text = reflection.content.map((part) => part.text).join('');
    index.searchFields[i] = { ...fieldsOf(text), answers: answersOf(path, first) };
  }
}

for (const each of [folder, draft]) refuseForeign(each);
await writeSite(
  draft,
  {
    readme: join(root, FIRST),
    projectDocuments: pages().map((page) => relative(process.cwd(), join(root, page)).split(sep).join('/')),
    searchInDocuments: true,
    searchGroupBoosts: BOOSTS,
    router: 'path',
    // Anchors as GitHub generates them, where the same pages are read.
    sluggerConfiguration: { lowercase: true },
    sort: ['kind', 'instance-first', 'alphabetical-ignoring-documents'],
    navigation: { includeGroups: true },
    groupOrder: [...Object.values(PARTS), PROJECT, 'Modules', '*'],
    highlightLanguages: LANGUAGES.split(' '),
    includeHierarchySummary: false,
    validation: { notExported: false, invalidLink: true, invalidPath: true, notDocumented: true },
  },
  (app) => {
    app.renderer.defineRouter('path', PathRouter);
    app.renderer.on(PageEvent.END, moveInlineScript);
    app.renderer.on(IndexEvent.PREPARE_INDEX, addSearchFields);
    app.converter.on(Converter.EVENT_CREATE_DOCUMENT, nameAfterHeading);
  },
);
writeFileSync(join(draft, 'assets', 'theme.js'), inline);
const code = join(draft, 'assets', 'main.js');
writeFileSync(code, withRanking(readFileSync(code, 'utf8')));
rmSync(folder, { recursive: true, force: true });
renameSync(draft, folder);
