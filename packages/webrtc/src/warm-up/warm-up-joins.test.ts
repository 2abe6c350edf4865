import { expect, test } from '@jest/globals';
import { createCertificate } from '../dtls/certificate.js';
import { warmUpJoins } from './warm-up-joins.js';

test('gives every warm-up client its keys', async () => {
  expect(warmUpJoins(await createCertificate(), 5)).toBe(5);
});
