// Runs before each end-to-end file. Only what needs real time on a shared machine may try a test once more, and only in
// the full run, which lists it as FLAKY (scripts/test.mjs).
import { jest } from '@jest/globals';

if (process.env['BLOOM_SECOND_TRY']) jest.retryTimes(1, { logErrorsBeforeRetry: true });
