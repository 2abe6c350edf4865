import type { OpenApiDocument } from './openapi.js';

type Json = Readonly<Record<string, unknown>>;

function objectOf(value: unknown): Json {
  return typeof value === 'object' && value !== null ? (value as Json) : {};
}

function escape(text: unknown): string {
  return String(text)
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .replaceAll('>', '&gt;')
    .replaceAll('"', '&quot;');
}

function json(value: unknown): string {
  return `<pre>${escape(JSON.stringify(value, null, 2))}</pre>`.replaceAll(
    /#\/components\/schemas\/(\w+)/g,
    (_all, name: string) => `<a href="#schema-${name}">${name}</a>`,
  );
}

/** Returns the name of a schema that is only a reference, as nearly all are. */
function shape(content: unknown): string {
  if (content === undefined) return '';
  const [[type, media] = ['', undefined], ...others] = Object.entries(objectOf(content));
  const reference = objectOf(objectOf(media)['schema'])['$ref'];
  if (type === 'application/json' && others.length === 0 && typeof reference === 'string') {
    const name = escape(reference.split('/').at(-1));
    return `: <a href="#schema-${name}">${name}</a>`;
  }

  return `<details><summary>body</summary>${json(content)}</details>`;
}

function operation(method: string, path: string, value: unknown): string {
  const { summary, operationId, security, parameters, requestBody, responses } = objectOf(value);
  const answers = Object.entries(objectOf(responses)).map(([status, response]) => {
    const { description, content } = objectOf(response);

    return `<li><b>${escape(status)}</b> ${escape(description)}${shape(content)}</li>`;
  });

  return [
    `<section id="${escape(operationId)}"><h3><code>${method.toUpperCase()} ${escape(path)}</code></h3>`,
    `<p>${escape(summary)}. ${security === undefined ? 'No token needed.' : 'Needs the token.'}</p>`,
    parameters === undefined ? '' : `<details><summary>parameters</summary>${json(parameters)}</details>`,
    requestBody === undefined ? '' : `<p>Request${shape(objectOf(requestBody)['content'])}</p>`,
    `<ul>${answers.join('')}</ul></section>`,
  ].join('\n');
}

/** Renders the OpenAPI document as one page, without scripts and external resources. */
export function docsPage(document: OpenApiDocument): string {
  const all = Object.entries(objectOf(document.paths)).flatMap(([path, methods]) =>
    Object.entries(objectOf(methods)).map(([method, value]) => ({ method, path, value })),
  );
  const operations = all.map(({ method, path, value }) => operation(method, path, value));
  const index = all.map(({ method, path, value }) => {
    const { operationId, summary } = objectOf(value);

    return `<li><a href="#${escape(operationId)}"><code>${method.toUpperCase()} ${escape(path)}</code></a> ${escape(summary)}</li>`;
  });
  const schemas = Object.entries(objectOf(objectOf(document.components)['schemas'])).map(
    ([name, schema]) => `<section id="schema-${escape(name)}"><h3>${escape(name)}</h3>${json(schema)}</section>`,
  );

  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${escape(document.info.title)}: HTTP API</title>
<style>
body { font: 16px/1.5 system-ui, sans-serif; max-width: 56rem; margin: 2rem auto; padding: 0 1rem; color: #222; }
pre { background: #f4f4f6; padding: .75rem; overflow-x: auto; font-size: 13px; }
section { border-top: 1px solid #ddd; }
summary { cursor: pointer; color: #446; }
</style>
</head>
<body>
<h1>${escape(document.info.title)} ${escape(document.info.version)}</h1>
<p>Requests carry <code>Authorization: Bearer &lt;JF_SERVER_API_TOKEN&gt;</code>.
The machine-readable description is at <a href="openapi.json">openapi.json</a>.</p>
<h2>Operations</h2>
<ul>
${index.join('\n')}
</ul>
${operations.join('\n')}
<h2>Schemas</h2>
${schemas.join('\n')}
</body>
</html>
`;
}
