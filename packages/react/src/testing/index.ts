export { TestBrowser } from './browser.js';
export { TestConnection, TestDevices } from './devices.js';
