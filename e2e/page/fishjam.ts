// The same SDK under its later name.
import { FishjamClient } from '@fishjam-dev/ts-client';
import { type ClientClass, startDriver } from './driver.js';

startDriver(FishjamClient as unknown as ClientClass);
