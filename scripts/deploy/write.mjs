// Writes deploy/compose*.yml from the table in deployments.mjs; scripts/deploy/deployments.test.ts fails while they
// differ.
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { deployments, environmentOf, GRACE_PERIOD, METRICS_PORT } from './deployments.mjs';
import { root } from '../setup.mjs';

/** The services around the node of the deployment `single`. */
const SURROUNDINGS = `  certificate:
    image: docker.io/certbot/certbot:v4.2.0
    restart: unless-stopped
    entrypoint: ["/bin/sh", "/certificate.sh"]
    environment:
      BLOOM_DOMAIN: "\${BLOOM_DOMAIN}"
    healthcheck:
      test: ["CMD", "test", "-s", "/certificate/cert.pem"]
      interval: 2s
      retries: 150
    ports:
      - "80:80"
    volumes:
      - ./docker/certificate.sh:/certificate.sh:ro
      - certbot:/etc/letsencrypt
      - certificate:/certificate
    networks:
      bloom:
  prometheus:
    image: docker.io/prom/prometheus:v3.5.0
    restart: unless-stopped
    command: ["--config.file=/etc/prometheus/prometheus.yml", "--storage.tsdb.retention.time=30d"]
    volumes:
      - ./prometheus:/etc/prometheus:ro
      - prometheus:/prometheus
    networks:
      bloom:
  alertmanager:
    image: docker.io/prom/alertmanager:v0.28.1
    restart: unless-stopped
    command: ["--config.file=/etc/alertmanager/alertmanager.yml", "--storage.path=/alertmanager"]
    ports:
      - "127.0.0.1:9093:9093"
    volumes:
      - ./alertmanager:/etc/alertmanager:ro
      - alertmanager:/alertmanager
    networks:
      bloom:
  grafana:
    image: docker.io/grafana/grafana:12.1.0
    restart: unless-stopped
    environment:
      GF_SECURITY_ADMIN_PASSWORD: "\${GRAFANA_PASSWORD:?is the password of the Grafana user admin}"
    ports:
      - "127.0.0.1:3000:3000"
    volumes:
      - ./grafana:/var/lib/grafana/dashboards:ro
      - ./grafana/provisioning:/etc/grafana/provisioning:ro
      - grafana:/var/lib/grafana
    networks:
      bloom:
`;

export const fileOf = (name) => (name === 'single' ? 'compose.yml' : `compose.${name}.yml`);

function volumesOf(name, { services }) {
  const own = services.map((service) => `${service.name}-resources`);
  return name === 'single' ? [...own, 'certbot', 'certificate', 'prometheus', 'alertmanager', 'grafana'] : own;
}

/** Returns the compose file of a deployment. */
export function compose(name, deployment) {
  const lines = [
    `# ${deployment.title}. ${deployment.about}`,
    '# Written by scripts/deploy/write.mjs from the table that the tests run; change it there.',
    ...(deployment.services.length > 1
      ? ['# The traffic between the nodes is plain text: keep it inside a private network.']
      : []),
    '# docs/guide/production.md explains the settings; deploy/env.example has those that you set, in a file named .env.',
    'services:',
  ];
  for (const service of deployment.services) {
    lines.push(
      `  ${service.name}:`,
      '    image: "${BLOOM_IMAGE:-localhost/bloom}"',
      '    build:',
      '      context: ..',
      '      target: "${BLOOM_TARGET:-bloom}"',
      `    hostname: ${service.name}`,
      '    restart: unless-stopped',
      ...(service.certificate ? ['    depends_on:', '      certificate:', '        condition: service_healthy'] : []),
      `    stop_grace_period: ${GRACE_PERIOD}`,
      '    mem_limit: "${BLOOM_MEMORY:-4g}"',
      '    environment:',
      ...Object.entries(environmentOf(service)).map(([key, value]) => `      ${key}: ${JSON.stringify(value)}`),
      '    expose:',
      `      - "${METRICS_PORT}"`,
      '    ports:',
      ...service.ports.map((port) => `      - "${port}"`),
      '    volumes:',
      `      - ${service.name}-resources:/app/bloom_resources`,
      ...(service.certificate ? ['      - certificate:/certificate:ro'] : []),
      '    networks:',
      `      ${deployment.network}:`,
      ...(deployment.alias ? ['        aliases:', `          - ${deployment.alias}`] : []),
    );
  }
  const top = (title, names) => `${title}:\n${names.map((entry) => `  ${entry}:\n`).join('')}`;
  const around = name === 'single' ? SURROUNDINGS : '';
  return `${lines.join('\n')}\n${around}${top('volumes', volumesOf(name, deployment))}${top('networks', [deployment.network])}`;
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) {
  for (const [name, deployment] of Object.entries(deployments))
    writeFileSync(join(root, 'deploy', fileOf(name)), compose(name, deployment));
}
