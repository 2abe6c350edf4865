import { JellyfishClient } from '@jellyfish-dev/ts-client-sdk';
import { startDriver } from './driver.js';

startDriver(JellyfishClient);
