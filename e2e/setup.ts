// Runs before each end-to-end file. Real browsers on a machine shared with others stumble now and then: a failure is
// printed and tried once more; what fails twice has failed.
import { jest } from '@jest/globals';

jest.retryTimes(1, { logErrorsBeforeRetry: true });
