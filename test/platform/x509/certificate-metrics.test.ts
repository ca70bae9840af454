import { X509Certificate } from 'node:crypto';
import { beforeEach, expect, it } from 'vitest';
import { issueCertificate } from '../../../src/injector/certificate/certificate-authority.ts';
import { Registry } from '../../../src/platform/prometheus.ts';
import {
  type CertificateMetrics,
  createCertificateMetrics,
  ValidityReader,
} from '../../../src/platform/x509/certificate-metrics.ts';
import { turnsDuring } from '../../support/turns.ts';

const MAX_BUNDLES = 64;

const CERTIFICATES_AT_ONCE = 20;

const DAY_MS = 86_400_000;
const NAME = 'token_sidecar_tls_certificate_expiry_timestamp_seconds';
const NOT_BEFORE = 'token_sidecar_tls_certificate_not_before_timestamp_seconds';

let registry: Registry;
let metrics: CertificateMetrics;
let unread: object[];
let short: string;
let long: string;

beforeEach(async () => {
  registry = new Registry();
  unread = [];
  metrics = createCertificateMetrics(registry, (_, user, file) => void unread.push({ ...user, file }));
  const nowMs = Date.now();
  const issue = async (days: number) =>
    (await issueCertificate({ hosts: ['a.test'], nowMs, lifetimeMs: days * DAY_MS })).cert;
  [short, long] = await Promise.all([issue(10), issue(90)]);
});

async function series(name = NAME): Promise<string[]> {
  return (await registry.metrics()).split('\n').filter((line) => line.startsWith(`${name}{`));
}

const endOf = (pem: string) => new X509Certificate(pem).validToDate.getTime() / 1000;

it('an identity ends with the first certificate of its chain to end', async () => {
  metrics.inUse({ route: 'api' }, 'certFile', 'identity', `${long}\n${short}`);

  expect(await series()).toEqual([`${NAME}{route="api",file="certFile"} ${endOf(short)}`]);
});

it('trust ends with the last of the authorities', async () => {
  metrics.inUse({ credential: 'default' }, 'caFile', 'trust', `# corporate\n${short}${long}`);

  expect(await series()).toEqual([`${NAME}{credential="default",file="caFile"} ${endOf(long)}`]);
});

it('a file that is replaced has one series', async () => {
  metrics.inUse({ route: 'api' }, 'caFile', 'trust', short);
  metrics.inUse({ route: 'api' }, 'caFile', 'trust', long);

  expect(await series()).toEqual([`${NAME}{route="api",file="caFile"} ${endOf(long)}`]);
});

it('tells the life of the certificate that ends, whatever else is in the file', async () => {
  const older = (
    await issueCertificate({ hosts: ['a.test'], nowMs: Date.now() - 5 * DAY_MS, lifetimeMs: 90 * DAY_MS })
  ).cert;
  metrics.inUse({ route: 'api' }, 'certFile', 'identity', `${older}\n${short}`);
  metrics.inUse({ route: 'api' }, 'caFile', 'trust', `${short}\n${older}`);

  const beginOf = (pem: string) => new X509Certificate(pem).validFromDate.getTime() / 1000;
  expect(await series(NOT_BEFORE)).toEqual([
    `${NOT_BEFORE}{route="api",file="certFile"} ${beginOf(short)}`,
    `${NOT_BEFORE}{route="api",file="caFile"} ${beginOf(older)}`,
  ]);
});

it('a file without a certificate has no series', async () => {
  const broken = '-----BEGIN CERTIFICATE-----\nnonsense\n-----END CERTIFICATE-----\n';
  metrics.inUse({ route: 'api' }, 'caFile', 'trust', broken);
  metrics.inUse({ route: 'api' }, 'certFile', 'identity', '');

  expect(await series()).toEqual([]);
});

it('a file whose reading fails is logged, and other and later files are reported', async () => {
  metrics.inUse({ route: 'api' }, 'caFile', 'trust', undefined as unknown as string);
  metrics.inUse({ route: 'api' }, 'certFile', 'identity', short);
  const ofCertFile = `${NAME}{route="api",file="certFile"} ${endOf(short)}`;
  expect(await series()).toEqual([ofCertFile]);
  expect(unread).toEqual([{ route: 'api', file: 'caFile' }]);

  metrics.inUse({ route: 'api' }, 'caFile', 'trust', long);
  expect(await series()).toEqual([ofCertFile, `${NAME}{route="api",file="caFile"} ${endOf(long)}`]);
});

it('a file that is replaced while it is read has the series of the last', async () => {
  metrics.inUse({ route: 'api' }, 'caFile', 'trust', long);
  const scraped = series();
  await new Promise((resolve) => setImmediate(resolve));
  metrics.inUse({ route: 'api' }, 'caFile', 'trust', short);

  await scraped;
  expect(await series()).toEqual([`${NAME}{route="api",file="caFile"} ${endOf(short)}`]);
});

it('a large file is read bit by bit, when it is in use already', async () => {
  const large = short.repeat(10 * CERTIFICATES_AT_ONCE);
  const turns = await turnsDuring(async () => {
    metrics.inUse({ route: 'api' }, 'caFile', 'trust', large);
    expect(await series()).toEqual([`${NAME}{route="api",file="caFile"} ${endOf(short)}`]);
  });
  expect(turns).toBeGreaterThan(9);
});

it('what was read is remembered by its content, of so many files', async () => {
  const reader = new ValidityReader();
  const read = (pem: string) => turnsDuring(() => reader.read(pem));
  const large = short.repeat(10 * CERTIFICATES_AT_ONCE);
  expect(await read(large)).toBeGreaterThan(9);
  expect(await read(`${large}`)).toBeLessThan(3);
  for (let count = 1; count < MAX_BUNDLES; count++) await reader.read(`# ${count}\n`);
  expect(await read(large)).toBeLessThan(3);
  for (let count = 0; count < MAX_BUNDLES; count++) await reader.read(`# another ${count}\n`);
  expect(await read(large)).toBeGreaterThan(9);
});
