import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { startAlertmanager } from './alertmanager.ts';

type Labels = Readonly<Record<string, string>>;

interface AlertJson {
  readonly labels: Labels;
  readonly status: { readonly inhibitedBy: readonly string[] };
}

/** The last pair: Alertmanager takes alerts in their order, so all is settled once this one is kept quiet. */
const MARK: readonly Labels[] = [
  { alertname: 'TokenSidecarFleetWithoutTokens', cluster: 'mark' },
  { alertname: 'TokenSidecarRefreshFailing', cluster: 'mark' },
];

/** Which of these alerts are kept quiet when all of them fire. */
async function keptQuiet(alerts: readonly Labels[]): Promise<readonly Labels[]> {
  const directory = await mkdtemp(join(tmpdir(), 'inhibition-'));
  onTestFinished(() => rm(directory, { recursive: true, force: true }));
  const url = `http://${await startAlertmanager(directory)}/api/v2/alerts`;
  const posted = await fetch(url, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify([...alerts, ...MARK].map((labels) => ({ labels }))),
  });
  expect(posted.status).toBe(200);
  const quiet = async () => {
    const all = (await (await fetch(url)).json()) as readonly AlertJson[];
    return all.filter(({ status }) => status.inhibitedBy.length > 0).map(({ labels }) => labels);
  };
  await expect.poll(quiet, { timeout: 20_000 }).toContainEqual(MARK[1]);
  return (await quiet()).filter(({ cluster }) => cluster !== 'mark');
}

const fleet = (labels: Labels = {}): Labels => ({ alertname: 'TokenSidecarFleetWithoutTokens', ...labels });
const namespace = (labels: Labels = {}): Labels => ({
  alertname: 'TokenSidecarNamespaceWithoutTokens',
  namespace: 'shop',
  ...labels,
});
const issuer = (labels: Labels = {}): Labels => ({ alertname: 'TokenSidecarIssuerDown', ...labels });
const renewal = (labels: Labels = {}): Labels => ({
  alertname: 'TokenSidecarRefreshFailing',
  namespace: 'shop',
  pod: 'shop-1',
  ...labels,
});

test('an issuer that is down keeps no page quiet that may be of another provider, or cluster', async () => {
  expect(
    await keptQuiet([
      issuer({ cluster: 'a' }),
      fleet({ cluster: 'a' }),
      issuer({ cluster: 'd' }),
      namespace({ cluster: 'd' }),
      issuer({ cluster: 'b', provider: 'issuer' }),
      fleet({ cluster: 'b', provider: 'keycloak' }),
      fleet({ cluster: 'c', provider: 'issuer' }),
    ]),
  ).toEqual([]);
});

test('an issuer that is down keeps the pages of those quiet whose provider it is', async () => {
  const page = fleet({ cluster: 'a', provider: 'issuer' });
  expect(await keptQuiet([issuer({ cluster: 'a', provider: 'issuer' }), page])).toEqual([page]);
});

test('a page keeps the tickets of its own cluster and namespace quiet', async () => {
  const quiet = [renewal({ cluster: 'a' }), renewal({ cluster: 'b' })];
  const told = [renewal({ cluster: 'c' }), renewal({ cluster: 'b', namespace: 'mail' })];
  const found = await keptQuiet([
    fleet({ cluster: 'a' }),
    namespace({ cluster: 'b' }),
    namespace({ cluster: 'c', namespace: 'mail' }),
    ...quiet,
    ...told,
  ]);
  expect(found).toHaveLength(quiet.length);
  expect(found).toEqual(expect.arrayContaining(quiet));
});

test('without a label of clusters all of it is one', async () => {
  expect(await keptQuiet([fleet(), renewal()])).toEqual([renewal()]);
});
