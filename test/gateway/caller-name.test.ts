import { expect, it } from 'vitest';
import type { Caller } from '../../src/callers/caller.ts';
import { keyOf } from '../../src/gateway/authorizer.ts';
import { identityOf } from '../../src/gateway/client-certificate.ts';
import { certificatesIn } from '../../src/platform/x509/pem.ts';
import { createCertificateAuthority } from '../support/certificate-authority.ts';

const authority = createCertificateAuthority('callers');

function callerOf(commonName: string, ...names: string[]): Caller {
  const [{ raw } = { raw: Buffer.alloc(0) }] = certificatesIn(authority.issue(commonName, ...names).cert);
  const named = identityOf(raw);
  if (named.kind === 'nobody') throw new Error(named.why);
  return named.caller;
}

it('tells a common name that looks like the DNS names of another caller from these', () => {
  expect(keyOf(callerOf('a.example,b.example'))).not.toBe(keyOf(callerOf('x', 'a.example', 'b.example')));
  expect(keyOf(callerOf('a.example'))).not.toBe(keyOf(callerOf('x', 'a.example')));
});
