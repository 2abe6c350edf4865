// Tests the API page as somebody who evaluates a node in production uses it, and what comes with the dashboard.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from '@jest/globals';
import { axeFindings } from '../harness/axe.js';
import { apiToken } from '../harness/bloom-node.js';
import { repository } from '../harness/processes.js';
import { browserSuite } from '../harness/stage.js';

const env = { NODE_ENV: 'production', JF_DASHBOARD: 'true', JF_SERVER_API_TOKEN: apiToken, JF_HOST: 'localhost' };

browserSuite('The page of the API', { node: { env } }, (stage) => {
  test('comes with the licences of the packages in the dashboard', async () => {
    const licences = await (await fetch(`${stage.node.url}/assets/licences.md`)).text();
    expect(licences).toContain(readFileSync(join(repository, 'node_modules/react/LICENSE'), 'utf8').trim());
    expect(licences).toContain('## hls.js');
  });

  test('accepts the token, offers examples and sends requests, all to this node', async () => {
    const page = await stage.newPage();
    const elsewhere: string[] = [];
    const complaints: string[] = [];
    page.on('request', (request) => {
      if (!/^(data|blob):/.test(request.url()) && !request.url().startsWith(stage.node.url))
        elsewhere.push(request.url());
    });
    page.on('console', (message) => {
      if (message.type() === 'error') complaints.push(message.text());
    });

    await page.goto(`${stage.node.url}/docs`);
    const create = page.locator('#operations-room-create_room');
    await create.getByText('Creates a room on the least loaded node').waitFor();
    await page.getByRole('button', { name: 'Authorize', exact: true }).click();
    const dialog = page.locator('.auth-container').filter({ hasText: 'JF_SERVER_API_TOKEN' });
    await dialog.locator('input').fill(apiToken);
    await dialog.getByRole('button', { name: 'Apply credentials' }).click();
    await page.locator('.modal-ux').getByRole('button', { name: 'Close' }).first().click();

    await create.getByText('Creates a room on the least loaded node').click();
    expect(await create.locator('textarea').inputValue()).toContain('"roomId": "standup"');
    await create.getByRole('button', { name: 'Execute' }).click();
    await create.locator('.live-responses-table').getByText('201').waitFor();
    expect(await stage.api.request('GET', '/room/standup')).toMatchObject({ status: 200 });

    expect(await axeFindings(page, ['light'])).toEqual([]);
    expect(elsewhere).toEqual([]);
    expect(complaints).toEqual([]);
    await page.context().close();
  });
});
