// Part of `npm run check`: names the remedies for werift-sctp that the installed version makes unnecessary, and
// compares the page for its maintainers with the scenarios. Given the folder of another version, it only reports how
// that one behaves.
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join, resolve } from 'node:path';
import { FAULTS, verdict } from '../../packages/webrtc/src/testing/sctp-faults/index.mjs';
import { report, root } from './modules.mjs';

const PAGE = 'docs/reference/werift-sctp.md';
const require = createRequire(join(root, 'packages/webrtc/package.json'));
const [folder] = process.argv.slice(2);

const library = folder === undefined ? 'werift-sctp' : resolve(folder);
const { SCTP } = require(library);
const { version } = require(join(library, 'package.json'));

const verdicts = new Map();
for (const fault of FAULTS) verdicts.set(fault, await verdict(fault, SCTP));

if (folder === undefined) report([...changes(), ...differences()]);
else {
  for (const [{ title }, is] of verdicts) console.log(`${is}: ${title}`);
  for (const change of changes()) console.log(change);
}

function* changes() {
  for (const [{ title, remedy }, is] of verdicts) {
    if (is === 'shown') continue;
    const row = `werift-sctp ${version} '${title}'`;
    if (is !== 'fixed') yield `${row}: ${is}`;
    else if (FAULTS.some((other) => other.remedy === remedy && verdicts.get(other) !== 'fixed'))
      yield `${row} is fixed: delete its scenario and its row in ${PAGE}; other rows still need ${remedy}`;
    else yield `${row} is fixed: delete its scenario, its row in ${PAGE} and ${remedy}`;
  }
}

function* differences() {
  const page = readFileSync(join(root, PAGE), 'utf8');
  const described = /^# Faults of werift-sctp (\S+)$/m.exec(page)?.[1];
  if (described !== version) yield `${PAGE} describes werift-sctp ${described}, but ${version} is installed`;
  const rows = new Set([...page.matchAll(/^\| ([^|]+) \|(?: [^|]+ \|){3}$/gm)].map(([, title]) => title));
  for (const { title } of FAULTS) if (!rows.delete(title)) yield `${PAGE} has no row '${title}'`;
  rows.delete('Symptom');
  for (const row of rows) if (!/^-+$/.test(row)) yield `${PAGE}: no scenario shows '${row}'`;
}
