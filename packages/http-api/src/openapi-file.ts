import { createOpenApiDocument } from './openapi.js';

const LINE_WIDTH = 120;

/** Writes JSON in the layout of this repository's formatter, so that the generated file passes its check. */
function layout(value: unknown, indent: string, prefix: string): string {
  if (typeof value !== 'object' || value === null) return JSON.stringify(value);

  const inner = `${indent}  `;
  if (Array.isArray(value)) {
    const line = `[${value.map((item) => JSON.stringify(item)).join(', ')}]`;
    const flat = value.every((item) => typeof item !== 'object' || item === null || Object.keys(item).length === 0);
    // One column for the comma that may follow.
    if (flat && indent.length + prefix.length + line.length + 1 <= LINE_WIDTH) return line;

    return `[\n${value.map((item) => inner + layout(item, inner, '')).join(',\n')}\n${indent}]`;
  }

  const entries = Object.entries(value).filter(([, item]) => item !== undefined);
  if (entries.length === 0) return '{}';
  const lines = entries.map(([name, item]) => {
    const key = `${JSON.stringify(name)}: `;
    return inner + key + layout(item, inner, key);
  });

  return `{\n${lines.join(',\n')}\n${indent}}`;
}

/** Renders docs/reference/openapi.json with the default protection of the files under /hls and /recording. */
export function openApiFile(version: string): string {
  return `${layout(createOpenApiDocument({ version, publicMediaFiles: false }), '', '')}\n`;
}
