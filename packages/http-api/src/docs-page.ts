import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import type { Express, Response } from 'express';

/** Swagger UI, compressed; written by scripts/build/bundle-docs-page.mjs. */
const FOLDER = fileURLToPath(new URL('../dist/docs-page/', import.meta.url));

const SCRIPT = 'application/javascript; charset=utf-8';
const CSS = 'text/css; charset=utf-8';
const FILES = { 'swagger-ui-bundle.js': SCRIPT, 'swagger-ui.css': CSS };

/**
 * The page and its files are served by this node, and it connects only to this node. Swagger UI draws its icons from
 * data URLs.
 */
const SECURITY_HEADERS = {
  'content-security-policy':
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; " +
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
  'x-content-type-options': 'nosniff',
  'referrer-policy': 'no-referrer',
};

const PAGE = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Bloom: HTTP API</title>
<link rel="stylesheet" href="docs/swagger-ui.css">
<link rel="stylesheet" href="docs/page.css">
<link rel="icon" href="data:,">
</head>
<body>
<noscript>The description of the API is at <a href="openapi.json">openapi.json</a>.</noscript>
<nav aria-label="More"><a href="book/">The book: guides, reference, packages</a></nav>
<div id="api"></div>
<script src="docs/swagger-ui-bundle.js"></script>
<script src="docs/start.js"></script>
</body>
</html>
`;

/**
 * Swagger UI's colours, darkened or lightened as WCAG 2.2 (1.4.3) requires. Always shows the button that copies a path:
 * while it grew under the pointer, it was too small to hit (2.5.8). Hides the server selector, which has one entry.
 */
const STYLE = `.swagger-ui .opblock.opblock-get .opblock-summary-method { background: #1264a8; }
.swagger-ui .opblock.opblock-post .opblock-summary-method { background: #16733f; }
.swagger-ui .opblock.opblock-patch .opblock-summary-method { background: #0c6b5d; }
.swagger-ui .opblock.opblock-delete .opblock-summary-method { background: #b3261e; }
.swagger-ui .info .title small pre { background: none; color: inherit; }
.swagger-ui .info .title small, .swagger-ui .info .title small.version-stamp { background: #3b4151; color: #fff; }
.swagger-ui .info a, .swagger-ui .info .url { color: #1f5fa8; }
.swagger-ui .btn.authorize, .swagger-ui .btn.authorize span { border-color: #16733f; color: #16733f; }
.swagger-ui .btn.authorize svg { fill: #16733f; }
.swagger-ui .btn.cancel { border-color: #b3261e; color: #b3261e; }
.swagger-ui .btn.execute { background: #1f5fa8; border-color: #1f5fa8; }
.swagger-ui .opblock .opblock-summary .view-line-link.copy-to-clipboard { margin: 0 5px; transition: none; width: 24px; }
nav { padding: 8px 20px; font-family: sans-serif; }
nav a { color: #1f5fa8; }
.swagger-ui .download-contents { background: #3b4151; }
.swagger-ui .json-schema-2020-12-expand-deep-button { color: #3b4151; }
.swagger-ui .scheme-container .schemes .schemes-server-container { display: none; }
.swagger-ui .microlight span[style*='rgb(211, 99, 99)'] { color: #ff9c9c !important; }
`;

/** What Swagger UI omits for screen readers and keyboards: selector, attribute, value. */
const MENDED = [
  ['.body-param__text', 'aria-label', 'Request body'],
  ['.examples-select-element', 'aria-label', 'Example'],
  ['pre.microlight', 'tabindex', '0'],
  ['.information-container', 'role', 'banner'],
  ['.filter-container', 'role', 'search'],
  ['h3', 'aria-level', '2'],
  ['h4', 'aria-level', '3'],
  ['h5', 'aria-level', '4'],
];

/** The token stays in the page's memory. Deep links to operations would be links inside buttons. */
const START = `new MutationObserver(() => {
  for (const [selector, name, value] of ${JSON.stringify(MENDED)}) {
    for (const element of document.querySelectorAll(selector + ':not([' + name + '])')) element.setAttribute(name, value);
  }
}).observe(document.body, { childList: true, subtree: true });
SwaggerUIBundle({
  url: 'openapi.json',
  dom_id: '#api',
  displayRequestDuration: true,
  filter: true,
  persistAuthorization: false,
  tryItOutEnabled: true,
  validatorUrl: null,
});
`;

/** Serves `/docs`: the API description with Swagger UI, to read and try out. */
export function serveDocsPage(app: Express): void {
  if (!existsSync(FOLDER)) return;
  const send = (type: string, body: string) => (_request: unknown, response: Response) => {
    response.writeHead(200, { ...SECURITY_HEADERS, 'content-type': type }).end(body);
  };

  app.get('/docs', send('text/html; charset=utf-8', PAGE));
  app.get('/docs/start.js', send(SCRIPT, START));
  app.get('/docs/page.css', send(CSS, STYLE));
  for (const [name, type] of Object.entries(FILES)) {
    // Every browser accepts gzip, and no other client reads these files.
    const headers = { ...SECURITY_HEADERS, 'content-type': type, 'content-encoding': 'gzip' };
    app.get(`/docs/${name}`, (_request, response) => response.sendFile(`${name}.gz`, { root: FOLDER, headers }));
  }
}
