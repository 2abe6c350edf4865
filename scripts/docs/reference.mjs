// `npm run generate:reference`: writes docs/reference/errors.md and docs/reference/log-events.md from the sources.
// Error codes are described beside the code. Log events are described in the page itself: their sentences are kept, and
// reference.test.ts fails while one is missing.
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { isForTests, readModules, root } from '../check/modules.mjs';

const PAGES = { 'errors.md': errorsPage, 'log-events.md': logEventsPage };
/** Names of files look like events. */
const EVENT = /'([a-z0-9_]+(?:\.(?!json')[a-z0-9_]+)+)'/g;
const LEVELS = { debug: 'debug', info: 'info', warn: 'warning', error: 'error' };

/** Packages that are not part of a node; their own documents describe what their users see. */
const OUTSIDE = new Set(['client', 'dashboard', 'react', 'server-sdk']);

const sources = () =>
  [...readModules().values()].filter(
    ({ path, group, name }) => !isForTests(path) && (group === 'packages' || group === 'apps') && !OUTSIDE.has(name),
  );

/** Returns the sentences of a doc comment in one line. */
const sentence = (comment = '') =>
  comment
    .replace(/^\s*\/\*\*|\*\/\s*$/g, '')
    .replace(/^\s*\* ?/gm, '')
    .split('@')[0]
    .replace(/\s+/g, ' ')
    .trim();

const DOC = String.raw`(\/\*\*(?:(?!\*\/)[\s\S])*\*\/\s*)?`;

/** Returns a module's error codes, from unions with commented members, lists, and classes with one code. */
function codesOf({ text }) {
  const found = new Map();
  const union = /^(?:export )?(?:type \w*ErrorCode =|const ERROR_CODES = \[)((?:(?!;\n)[\s\S])*);/gm;
  for (const [, members] of text.matchAll(union))
    for (const [, doc, code] of members.matchAll(new RegExp(`${DOC}\\|?\\s*'([A-Z][A-Z0-9_]+)'`, 'g')))
      found.set(code, sentence(doc));
  const classes = new RegExp(`${DOC}^(?:export )?class \\w+ extends \\w+ \\{((?:(?!^\\})[\\s\\S])*)`, 'gm');
  for (const [, doc, body] of text.matchAll(classes)) {
    const [, code] = /(?:readonly code = |super\(\s*)'([A-Z0-9_]+)'/.exec(body) ?? [];
    if (code !== undefined && (found.get(code) ?? '') === '') found.set(code, sentence(doc));
  }

  return [...found].map(([code, meaning]) => ({ code, meaning }));
}

function statuses() {
  const text = readFileSync(join(root, 'packages', 'http-api', 'src', 'errors.ts'), 'utf8');

  return new Map([...text.matchAll(/^ {2}([A-Z_]+): (\d{3}),$/gm)].map(([, code, status]) => [code, status]));
}

function errorsPage() {
  const status = statuses();
  const byPackage = new Map();
  for (const module of sources()) {
    const found = codesOf(module);
    const owner = module.group === 'apps' ? `apps/${module.name}` : module.name;
    if (found.length > 0) byPackage.set(owner, [...(byPackage.get(owner) ?? []), ...found]);
  }
  const withStatus = ['rooms', 'files', 'whip'];
  const sections = [...byPackage]
    .toSorted(([a], [b]) => a.localeCompare(b))
    .map(([owner, codes]) => {
      const http = withStatus.includes(owner);
      const rows = codes.map(({ code, meaning }) =>
        http ? `| \`${code}\` | ${status.get(code) ?? ''} | ${meaning} |` : `| \`${code}\` | ${meaning} |`,
      );
      const head = http ? '| Code | HTTP | Meaning |\n|---|---|---|' : '| Code | Meaning |\n|---|---|';

      return `## ${owner}\n\n${head}\n${rows.join('\n')}\n`;
    });

  return `# Errors

Every error that callers are meant to handle has a stable \`code\`; its message is a sentence with the offending value. The tables
list the codes by package. Where a code reaches a client of the HTTP API, its status is beside it; the body is
\`{"errors": "<message>"}\`. Exit codes of a node are in [lifecycle](lifecycle.md), those of \`bloomctl\` in [bloomctl](bloomctl.md).

This page is generated from the sources (\`npm run generate:reference\`).

${sections.join('\n')}`;
}

/** Returns the keys of the object literal that starts at an index. */
function fieldsAt(text, start) {
  const keys = [];
  let depth = 0;
  for (let at = start; at < text.length; at += 1) {
    const char = text[at];
    if ('{[('.includes(char)) depth += 1;
    if ('}])'.includes(char)) depth -= 1;
    if (depth === 0) break;
    if (depth === 1 && (char === '{' || char === ',')) {
      const [, key] = /^\s*(?!\.\.\.)(\w+)\s*[,:}]/.exec(text.slice(at + 1)) ?? [];
      if (key !== undefined) keys.push(key);
    }
  }

  return keys;
}

function eventsOf({ text }, areas) {
  const found = [];
  for (const match of text.matchAll(EVENT)) {
    const [literal, event] = match;
    if (!areas.has(event.split('.')[0])) continue;
    const before = text.slice(Math.max(0, match.index - 160), match.index);
    // A line that the logger writes about itself.
    const [, own] = /level: '(\w+)', event: $/.exec(before) ?? [];
    if (own !== undefined) {
      const start = text.indexOf('{', match.index);
      found.push({ event, levels: [own], fields: fieldsAt(text, start) });
      continue;
    }
    const [, method, chosen] = /(?:\.#?(debug|info|warn|error)|\.log\[([^\]]*)\])\([^;{}]*$/.exec(before) ?? [];
    // A line that a session asks for.
    const [, asked = method] = /\{ type: '(debug|info|warn|error)', event: $/.exec(before) ?? [];
    const methods =
      asked === undefined ? [...(chosen ?? 'error').matchAll(/debug|info|warn|error/g)].map(String) : [asked];
    const after = match.index + literal.length;
    const [gap] = /^(?: : '[^']+')?,\s*(?=\{)/.exec(text.slice(after)) ?? [];
    const fields = gap === undefined ? [] : fieldsAt(text, after + gap.length);
    found.push({ event, levels: methods.map((each) => LEVELS[each]), fields });
  }

  return found;
}

function logEventsPage(page) {
  const meanings = new Map(
    [...page.matchAll(/^\| `([^`]+)` \|[^|]*\|[^|]*\| ?(.*?) ?\|$/gm)].map(([, event, text]) => [event, text]),
  );
  const modules = sources();
  const areas = new Set(
    modules.flatMap(({ text }) =>
      [...text.matchAll(/(?:\.#?(?:debug|info|warn|error)\(\s*|event: )'([a-z0-9_]+)\./g)].map(([, area]) => area),
    ),
  );
  const events = new Map();
  for (const { event, levels, fields } of modules.flatMap((module) => eventsOf(module, areas))) {
    const known = events.get(event) ?? { levels: new Set(), fields: new Set() };
    for (const level of levels) known.levels.add(level);
    for (const field of fields) known.fields.add(field);
    events.set(event, known);
  }
  const byArea = new Map();
  for (const [event, rest] of [...events].toSorted(([a], [b]) => a.localeCompare(b))) {
    const area = event.split('.')[0];
    byArea.set(area, [...(byArea.get(area) ?? []), { event, ...rest }]);
  }
  const sections = [...byArea].map(([area, own]) => {
    const rows = own.map(
      ({ event, levels, fields }) =>
        `| \`${event}\` | ${[...levels].join(', ')} | ${[...fields].map((field) => `\`${field}\``).join(', ')} | ${meanings.get(event) ?? ''} |`,
    );

    return `## ${area}\n\n| Event | Level | Fields | Meaning |\n|---|---|---|---|\n${rows.join('\n')}\n`;
  });

  return `# Log events

A line of the log is an event with fields. Most loggers also add ids: \`roomId\`, \`peerId\`, \`componentId\`, \`node\` or \`requestId\`,
where the line belongs to one. \`JF_LOG_LEVEL\` sets the lowest level that is written, \`JF_STRUCTURED_LOGGING=true\` writes
JSON. The lines that a node logs when it starts are sentences and not events; see [getting started](../guide/getting-started.md).

Stack traces name lines of the program as it was built, each below a comment with its source file. \`NODE_OPTIONS=--enable-source-maps\`
makes them name lines of the sources; the first error of each thread then stops it for up to half a second.

Names, levels and fields are generated from the sources (\`npm run generate:reference\`).

${sections.join('\n')}`;
}

/** Returns the expected pages, by file name. */
export function referencePages() {
  return Object.entries(PAGES).map(([name, write]) => {
    const path = join(root, 'docs', 'reference', name);
    let page = '';
    try {
      page = readFileSync(path, 'utf8');
    } catch {
      // The page does not exist yet.
    }

    return { path, page, wanted: write(page) };
  });
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href)
  for (const { path, wanted } of referencePages()) writeFileSync(path, wanted);
