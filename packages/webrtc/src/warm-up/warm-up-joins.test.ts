import { expect, test } from '@jest/globals';
import { createCertificate } from '../dtls/certificate.js';
import { warmUpJoins } from './warm-up-joins.js';

test('every client of the warm-up gets its keys', async () => {
  expect(warmUpJoins(await createCertificate(), 5)).toBe(5);
});
