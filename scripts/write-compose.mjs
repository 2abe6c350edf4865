// Writes docs/guide/compose/*.yml from the table in deployments.mjs. `--check` only says whether the files are in step.
import { readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { deployments } from './deployments.mjs';

const folder = join(dirname(dirname(fileURLToPath(import.meta.url))), 'docs', 'guide', 'compose');

function compose(deployment) {
  const lines = [
    `# ${deployment.title}. ${deployment.about}`,
    '# Written by scripts/write-compose.mjs from the table that the tests run; change it there.',
    '# The traffic between the nodes is plain text: keep it inside a private network, and set a cookie of your own.',
    'services:',
  ];
  for (const { name, port, env } of deployment.services) {
    const all = { JF_HOST: `localhost:${port}`, JF_PORT: String(port), ...env };
    lines.push(
      `  ${name}:`,
      '    build: ../../..',
      `    hostname: ${name}`,
      '    restart: on-failure',
      '    environment:',
      ...Object.entries(all).map(([key, value]) => `      ${key}: ${JSON.stringify(value)}`),
      '    ports:',
      `      - "${port}:${port}"`,
      '    networks:',
      `      ${deployment.network}:`,
      ...(deployment.alias ? ['        aliases:', `          - ${deployment.alias}`] : []),
    );
  }
  lines.push('networks:', `  ${deployment.network}:`, '    driver: bridge', '');
  return lines.join('\n');
}

let stale = 0;
for (const [name, deployment] of Object.entries(deployments)) {
  const file = join(folder, `${name}.yml`);
  const text = compose(deployment);
  if (!process.argv.includes('--check')) {
    writeFileSync(file, text);
  } else if (readFileSync(file, 'utf8') !== text) {
    console.error(`docs/guide/compose/${name}.yml is not what the table says: run node scripts/write-compose.mjs`);
    stale += 1;
  }
}
process.exit(stale === 0 ? 0 : 1);
