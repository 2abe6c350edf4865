import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import type { Express, Response } from 'express';

/** Swagger UI, compressed: scripts/bundle-docs-page.mjs writes it. */
const FOLDER = fileURLToPath(new URL('../dist/docs-page/', import.meta.url));

const SCRIPT = 'application/javascript; charset=utf-8';
const FILES = { 'swagger-ui-bundle.js': SCRIPT, 'swagger-ui.css': 'text/css; charset=utf-8' };

/** The page and its files come from this node, and it talks to this node only. Swagger UI draws its icons from data URLs. */
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
<link rel="icon" href="data:,">
</head>
<body>
<noscript>The description of the API is at <a href="openapi.json">openapi.json</a>.</noscript>
<main id="api"></main>
<script src="docs/swagger-ui-bundle.js"></script>
<script src="docs/start.js"></script>
</body>
</html>
`;

/** The token stays in the memory of the page. */
const START = `SwaggerUIBundle({
  url: 'openapi.json',
  dom_id: '#api',
  deepLinking: true,
  displayRequestDuration: true,
  filter: true,
  persistAuthorization: false,
  tryItOutEnabled: true,
  validatorUrl: null,
});
`;

/** Serves `/docs`: the description of the API with Swagger UI, to read and to try out. */
export function serveDocsPage(app: Express): void {
  if (!existsSync(FOLDER)) return;
  const send = (type: string, body: string) => (_request: unknown, response: Response) => {
    response.writeHead(200, { ...SECURITY_HEADERS, 'content-type': type }).end(body);
  };

  app.get('/docs', send('text/html; charset=utf-8', PAGE));
  app.get('/docs/start.js', send(SCRIPT, START));
  for (const [name, type] of Object.entries(FILES)) {
    // Every browser accepts gzip, and nothing else reads these files.
    const headers = { ...SECURITY_HEADERS, 'content-type': type, 'content-encoding': 'gzip' };
    app.get(`/docs/${name}`, (_request, response) => response.sendFile(`${name}.gz`, { root: FOLDER, headers }));
  }
}
