import { execFileSync } from 'node:child_process';
import { join } from 'node:path';

/** Creates or replaces a self-signed certificate for localhost in that folder. Needs openssl. */
export function makeCertificate(folder: string): { key: string; cert: string } {
  const files = { key: join(folder, 'key.pem'), cert: join(folder, 'cert.pem') };
  const request =
    'req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=localhost ' +
    `-addext subjectAltName=DNS:localhost,IP:127.0.0.1 -keyout ${files.key} -out ${files.cert}`;
  execFileSync('openssl', request.split(' '), { stdio: 'pipe' });

  return files;
}
