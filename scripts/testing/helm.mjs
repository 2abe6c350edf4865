// Renders the Helm chart of deploy/helm without helm, with the few Go template actions that the chart uses. Any other
// action is an error, so that the chart cannot outgrow the tests.
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse, stringify } from 'yaml';

const ACTION = /(\{\{-?)\s*(.*?)\s*(-?\}\})/g;

/** Splits a template into texts and actions, without the white space that `{{-` and `-}}` remove. */
function tokens(template) {
  const found = [];
  let end = 0;
  for (const { 0: whole, 1: open, 2: code, 3: close, index } of template.matchAll(ACTION)) {
    const text = template.slice(end, index);
    found.push({ text: open === '{{-' ? text.trimEnd() : text }, { code });
    end = index + whole.length;
    if (close === '-}}') end += /^\s*/.exec(template.slice(end))[0].length;
  }
  return [...found, { text: template.slice(end) }];
}

/** @throws Error for a path missing from the values, such as a missing default in values.yaml */
function lookUp(path, scope) {
  if (/^\d+$/.test(path)) return Number(path);
  let value = path.startsWith('$') ? scope : scope['.'];
  for (const key of path.split('.').filter((part) => part !== '')) {
    value = value?.[key];
    if (value === undefined) throw new Error(`the chart has no value ${path}`);
  }
  return value;
}

const FUNCTIONS = {
  quote: (value) => JSON.stringify(String(value)),
  add: (...numbers) => numbers.reduce((sum, number) => sum + number, 0),
  toYaml: (value) => stringify(value).trimEnd(),
  int: Number,
  until: (count) => Array.from({ length: count }, (_, i) => i),
  nindent: (columns, text) => `\n${text.replaceAll(/^/gm, ' '.repeat(columns))}`,
};

/** Evaluates `function argument | function ...`. */
function evaluate(code, scope) {
  return code.split('|').reduce((piped, part) => {
    const [name, ...rest] = part.trim().split(/\s+/);
    const args = rest.map((path) => lookUp(path, scope));
    if (Object.hasOwn(FUNCTIONS, name)) return FUNCTIONS[name](...args, ...(piped === undefined ? [] : [piped]));
    if (args.length > 0 || piped !== undefined) throw new Error(`the chart's tests do not know {{ ${code} }}`);
    return lookUp(name, scope);
  }, undefined);
}

/** Orders the names of a map, or the numbers of a list. */
function compareKeys(a, b) {
  if (/^\d+$/.test(a) && /^\d+$/.test(b)) return Number(a) - Number(b);
  return a < b ? -1 : 1;
}

/** Renders tokens up to the `end` of their block: either those before an `else` or those after it. */
function block(queue, scope, [before, behind = false]) {
  let output = '';
  let shown = before;
  for (let token = queue.shift(); token !== undefined; token = queue.shift()) {
    const { text, code } = token;
    if (code === 'end') break;
    if (code === 'else') {
      shown = behind;
      continue;
    }
    if (code === undefined) output += shown ? text : '';
    else if (code.startsWith('if ')) {
      const holds = Boolean(lookUp(code.slice(3), scope));
      output += block(queue, scope, [shown && holds, shown && !holds]);
    } else if (code.startsWith('range ')) {
      const [, key, value, path] = /^range (\$\w+), (\$\w+) := (.+)$/.exec(code);
      const rest = [...queue];
      // Go iterates over a map in the order of its keys.
      const entries = Object.entries(evaluate(path, scope)).toSorted(([a], [b]) => compareKeys(a, b));
      for (const entry of entries) {
        queue.splice(0, queue.length, ...rest);
        output += block(queue, { ...scope, [key]: entry[0], [value]: entry[1] }, [shown]);
      }
      if (entries.length === 0) block(queue, scope, [false]);
    } else if (shown) output += evaluate(code, scope);
  }
  return output;
}

/** Returns the chart's Kubernetes objects, with `values` overriding its defaults. */
export function renderChart(folder, values = {}) {
  const read = (...path) => readFileSync(join(folder, ...path), 'utf8');
  const { appVersion } = parse(read('Chart.yaml'));
  const root = {
    Values: { ...parse(read('values.yaml')), ...values },
    Release: { Name: 'media', Namespace: 'calls' },
    Chart: { AppVersion: appVersion },
  };
  return readdirSync(join(folder, 'templates'))
    .flatMap((name) => block(tokens(read('templates', name)), { '.': root, $: root }, [true]).split(/^---$/m))
    .map((document) => parse(document))
    .filter((object) => object !== null);
}
