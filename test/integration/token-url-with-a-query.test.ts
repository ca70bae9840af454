import { expect, it, onTestFinished } from 'vitest';
import { loadConfig } from '../../src/config/load.ts';
import { formatAddress } from '../../src/platform/net/address.ts';
import { startSidecar } from '../../src/sidecar/sidecar.ts';
import { mountSecret } from '../support/kubelet-secret.ts';
import { captureLog } from '../support/log-capture.ts';
import { runHere } from '../support/run-here.ts';
import { answer, answerToken, ScriptedTokenEndpoint } from '../support/scripted-token-endpoint.ts';
import { temporaryFile } from '../wire/temporary-file.ts';

const QUERY = '?grant_type=account_credentials&account_id=Hidden%20Account&api-version=1';
const HIDDEN = /Hidden|account_id|api-version/;

/** Zoom's form: what is asked for, and of which account, stands in the URL. */
async function write(query: string, settings: Record<string, unknown> = {}) {
  const provider = await ScriptedTokenEndpoint.start();
  const secret = await mountSecret({ client_id: 'shop', client_secret: 's3cret' });
  const path = await temporaryFile(
    'token-sidecar.json',
    JSON.stringify({
      listen: '127.0.0.1:0',
      admin: { listen: '127.0.0.1:0' },
      credentials: [
        { name: 'default', tokenUrl: `${provider.url}${query}`, dir: secret.directory, ...settings },
      ],
      routes: [{ name: 'api', upstream: 'http://127.0.0.1:9' }],
    }),
  );
  return { provider, path };
}

it('the query of the token endpoint is sent as it is written, and nothing of it is shown anywhere', async () => {
  const { provider, path } = await write(QUERY);
  provider.script = answer(
    400,
    JSON.stringify({ error: 'invalid_request', error_description: 'no account "hidden account" here' }),
  );
  const { log, lines } = captureLog();
  const config = await loadConfig({ config: { key: '--config', text: path } });
  const sidecar = await startSidecar({ config, log, quit: () => {} });
  onTestFinished(() => sidecar.stop());
  await expect.poll(() => sidecar.tokens[0]?.snapshot().lastFailure?.result).toBe('rejected');
  expect(provider.received[0]?.path).toBe(new URL(`${provider.url}${QUERY}`).pathname + QUERY);
  expect(Object.fromEntries(provider.received[0]?.form ?? [])).toEqual({});

  const read = async (address: string, place: string) => (await fetch(`http://${address}${place}`)).text();
  const admin = formatAddress(sidecar.adminAddress);
  const shown = {
    log: lines.join('\n'),
    answer: await read(formatAddress(sidecar.proxyAddress), '/'),
    status: await read(admin, '/api/status'),
    page: await read(admin, '/'),
    metrics: await read(admin, '/metrics'),
    ready: await read(admin, '/readyz'),
    check: Object.values(await runHere(['check', '--config', path])).join('\n'),
  };
  for (const text of Object.values(shown)) expect(text).not.toMatch(HIDDEN);
  // That there is one is.
  for (const of of ['log', 'status', 'page', 'check'] as const) expect(shown[of]).toContain('/token?…');

  provider.script = answerToken();
  const checked = await runHere(['check', '--config', path]);
  expect(checked.stdout).toContain('/token?…, grant account_credentials');
  expect(checked.stdout).toMatch(/token +granted by/);
  expect(Object.values(checked).join('\n')).not.toMatch(HIDDEN);
});

it.each([
  ['#part', {}, 'expected an http or https URL without credentials or fragment'],
  [`${QUERY}#part`, {}, 'expected an http or https URL without credentials or fragment'],
  ['?client_secret=Hidden', {}, 'expected a query without client_secret, which is sent in another way'],
  ['?scope=Hidden', {}, 'expected a query without scope, which is sent in another way'],
  [
    '?resource=Hidden',
    { parameters: { resource: 'a' } },
    'credentials[0].parameters.resource: expected nothing beside the parameter of this name in the query',
  ],
  ['?id=Hidden', { clientAuth: 'tls_client_auth' }, 'an https token endpoint instead of http://127.0.0.1:'],
])('a URL ending in %s is refused beside %j, without what it holds', async (query, settings, problem) => {
  const { path } = await write(query, settings);
  const { code, stdout, stderr } = await runHere(['check', '--config', path]);
  expect(code).toBe(78);
  expect(stdout + stderr).toContain(problem);
  expect(stdout + stderr).not.toMatch(HIDDEN);
});

it('a URL by flag may have a query too', async () => {
  const { provider, path } = await write('');
  const { stdout } = await runHere(['check', '--config', path, '--token-url', `${provider.url}${QUERY}`]);
  expect(provider.received[0]?.path).toContain(QUERY);
  expect(stdout).not.toMatch(HIDDEN);
});

it.each([
  ['?account=Hidden+Acc,x'],
  ['?account=Hidden%20Acc:x'],
  ['?account=Hidd%e4nAcc'],
  ['?Hidden-Account'],
  ['?account=Hidden&user=Hidden%2FAcc'],
])('%s is not shown if the provider repeats it as it is written', async (query) => {
  const { provider, path } = await write(query);
  const said = { error: 'invalid_request', error_description: `nothing at /token${query}` };
  provider.script = answer(400, JSON.stringify(said));
  const { stdout, stderr } = await runHere(['check', '--config', path]);
  expect(stdout).toContain('nothing at /token');
  expect(stdout + stderr).not.toMatch(/Hidd|Acc/);
});
