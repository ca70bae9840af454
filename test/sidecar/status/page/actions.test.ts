import { request } from 'node:http';
import { expect, it, onTestFinished } from 'vitest';
import { startAdminServer } from '../../../../src/admin/admin-server.ts';
import { HOP_FIELD } from '../../../../src/platform/net/listen.ts';
import { logLevelEndpoint, renewEndpoint } from '../../../../src/sidecar/status/page/actions.ts';
import type { RenewalResponse } from '../../../../src/token/token-source.ts';
import { captureLog } from '../../../support/log-capture.ts';

interface Answered {
  readonly status: number;
  readonly location: string | undefined;
  readonly text: string;
}

async function serve(answer: RenewalResponse = 'begun') {
  const done: string[] = [];
  const server = await startAdminServer(
    { host: '127.0.0.1', port: 0 },
    {
      '/api/renew': renewEndpoint((name) => {
        if (name !== 'crm') return undefined;
        done.push(`renew ${name}`);
        return answer;
      }),
      '/api/log-level': logLevelEndpoint((level) => void done.push(`level ${level}`)),
    },
    captureLog().log,
  );
  onTestFinished(() => server.close());
  const ask = (path: string, headers: Readonly<Record<string, string>> = {}, method = 'POST') =>
    new Promise<Answered>((resolve, reject) => {
      const asked = request({ ...server.address, path, method, headers, agent: false }, (response) => {
        let text = '';
        response.setEncoding('utf8').on('data', (part: string) => {
          text += part;
        });
        response.once('end', () =>
          resolve({ status: response.statusCode ?? 0, location: response.headers.location, text }),
        );
      });
      asked.once('error', reject);
      asked.end();
    });
  return { ask, done, own: `127.0.0.1:${server.address.port}` };
}

it.each<[RenewalResponse, number]>([
  ['begun', 202],
  ['too_soon', 429],
  ['impossible', 409],
])('a token that is asked for: %s is %d, with a sentence', async (answer, status) => {
  const { ask, done } = await serve(answer);
  const answered = await ask('/api/renew?credential=crm');
  expect([answered.status, done]).toEqual([status, ['renew crm']]);
  expect(JSON.parse(answered.text).message).toMatch(/redential crm.*\.$/);
});

it('a log level is set if there is one of this name', async () => {
  const { ask, done } = await serve();
  expect((await ask('/api/log-level?level=debug')).status).toBe(200);
  const refused = await ask('/api/log-level?level=loud');
  expect([refused.status, JSON.parse(refused.text).message]).toEqual([
    400,
    'The level must be one of trace, debug, info, warn, error, fatal, silent.',
  ]);
  expect(done).toEqual(['level debug']);
});

it('no such credential is 404, and what was asked for is no HTML', async () => {
  const { ask } = await serve();
  const answered = await ask('/api/renew?credential=%3Cb%3E', { accept: 'text/html' });
  expect(answered.status).toBe(404);
  expect(JSON.parse(answered.text)).toEqual({ message: 'There is no credential "<b>".' });
});

it('a form of the page gets the page again', async () => {
  const { ask, own, done } = await serve();
  const headers = { accept: 'text/html,*/*', origin: `http://${own}`, 'sec-fetch-site': 'same-origin' };
  expect(await ask('/api/renew?credential=crm', headers)).toMatchObject({
    status: 303,
    location: '../',
  });
  expect(done).toEqual(['renew crm']);
});

it.each<[string, Readonly<Record<string, string>>]>([
  ['the page of another site', { origin: 'https://evil.example.com', 'sec-fetch-site': 'cross-site' }],
  ['a form of another site', { origin: 'null' }],
  ['a name that is let resolve to here', { host: 'evil.example.com' }],
  ['somebody behind a sidecar', { [HOP_FIELD]: '1' }],
])('nothing is changed by %s', async (_, headers) => {
  const { ask, done } = await serve();
  expect((await ask('/api/renew?credential=crm', headers)).status).toBe(403);
  expect((await ask('/api/log-level?level=trace', headers)).status).toBe(403);
  expect(done).toEqual([]);
});

it('nothing is changed by a link', async () => {
  const { ask, done } = await serve();
  expect((await ask('/api/renew?credential=crm', {}, 'GET')).status).toBe(405);
  expect(done).toEqual([]);
});
