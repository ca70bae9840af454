/**
 * What the API server refuses of a profile besides wrong fields, in CEL. The injector judges all of it again, and more. Nothing
 * here is newer than Kubernetes 1.28.
 */

export interface Rule {
  readonly rule: string;
  readonly message: string;
}

/** The name becomes part of directories and of labels of metrics. */
export const OBJECT_RULES: readonly Rule[] = [
  {
    rule: "self.metadata.name.size() <= 63 && !self.metadata.name.contains('.')",
    message: 'the name of a profile has 1 to 63 lower-case letters, digits and dashes',
  },
];

/** A list that is made once. Made anew for each member of another list, it took the API server a quarter of a second for a large profile. */
const withNames = (names: string, rule: string): string => `[${names}].all(names, ${rule})`;

const namesCredential = (list: string): Rule => ({
  rule: `!has(self.${list}) || ${withNames('self.credentials.filter(c, has(c.name)).map(c, c.name)', `self.${list}.all(r, has(r.credential) ? r.credential in names : self.credentials.size() == 1)`)}`,
  message: `each of ${list} names one of the credentials; only with one credential none need be named`,
});

const named = (list: string): Rule => ({
  rule: `!has(self.${list}) || self.${list}.size() == 1 || (self.${list}.all(a, has(a.name)) && ${withNames(`self.${list}.map(a, a.name)`, 'names.all(n, names.indexOf(n) == names.lastIndexOf(n))')})`,
  message: `where there are several ${list}, each has a name of its own`,
});

export const SPEC_RULES: readonly Rule[] = [
  {
    rule: 'has(self.routes) || has(self.hosts) || self.credentials.exists(c, has(c.output))',
    message: 'say what the tokens are for: routes, hosts or credentials with an output',
  },
  {
    rule: "!has(self.mode) || (self.mode == 'reverse') != has(self.hosts)",
    message: 'mode reverse goes with routes alone, and every other mode needs hosts',
  },
  named('credentials'),
  named('routes'),
  namesCredential('routes'),
  namesCredential('hosts'),
];

export const CREDENTIAL_RULES: readonly Rule[] = [
  {
    rule: '[has(self.authUrl), has(self.tokenUrl), has(self.issuerUrl)].filter(given, given).size() <= 1',
    message: 'give one of authUrl, tokenUrl and issuerUrl',
  },
  {
    rule: "has(self.authUrl) || has(self.tokenUrl) || has(self.issuerUrl) || (has(self.grant) && (self.grant == 'static' || (self.grant == 'jwt_bearer' && has(self.jwtBearer) && has(self.jwtBearer.kind) && self.jwtBearer.kind == 'google_service_account')))",
    message: 'say where tokens are asked for: issuerUrl, tokenUrl or authUrl',
  },
  { rule: '!has(self.realm) || has(self.authUrl)', message: 'realm goes with authUrl' },
  {
    rule: "has(self.secret) || has(self.serviceAccountToken) || (has(self.clientAuth) && self.clientAuth == 'none' && has(self.tokenExchange) && has(self.tokenExchange.subjectTokenFrom) && self.tokenExchange.subjectTokenFrom == 'request')",
    message:
      'say what proves the client: a secret or a serviceAccountToken, or clientAuth none where each request brings its token',
  },
];

/** Of profiles of the cluster: the broker serves no others. */
export const BROKER_RULES: readonly Rule[] = [
  {
    rule: "!has(self.via) || self.via != 'broker' || !has(self.serviceAccountToken)",
    message: 'via broker goes without serviceAccountToken: the broker has no service account of the pod',
  },
  {
    rule: "!has(self.via) || self.via != 'broker' || !has(self.grant) || self.grant in ['client_credentials', 'jwt_bearer']",
    message: 'via broker goes with the grants client_credentials and jwt_bearer',
  },
];

/** The broker alone knows service accounts. */
export const SERVICE_ACCOUNTS_RULES: readonly Rule[] = [
  {
    rule: "!has(self.serviceAccounts) || self.credentials.exists(c, has(c.via) && c.via == 'broker')",
    message: 'serviceAccounts go with a credential that is via broker',
  },
];

/** The field is in the schema of both kinds. */
export const NO_BROKER_RULES: readonly Rule[] = [
  {
    rule: "!has(self.via) || self.via == 'sidecar'",
    message: 'the broker serves ClusterTokenProfiles alone',
  },
];

export const AUTHORITIES_RULES: readonly Rule[] = [
  { rule: 'has(self.configMap) != has(self.secret)', message: 'give either a configMap or a secret' },
];

export const EGRESS_PROXY_RULES: readonly Rule[] = [
  {
    rule: "self.url.matches('^http://[^/@?#]+/?$')",
    message: 'the proxy is http://host:port, and nothing else; its user name and password are in the secret',
  },
];

export const OUTPUT_RULES: readonly Rule[] = [
  {
    rule: 'has(self.file) || (has(self.endpoint) && self.endpoint)',
    message: 'say where the token is given out: in a file, at the endpoint or both',
  },
  {
    rule: 'has(self.file) || (!has(self.mode) && !has(self.group))',
    message: 'mode and group go with file',
  },
];

/** Of a label selector: NotIn without values would take every namespace. */
export const EXPRESSION_RULES: readonly Rule[] = [
  {
    rule: "(self.operator in ['In', 'NotIn']) == has(self.values)",
    message: 'values go with the operators In and NotIn, and with them alone',
  },
];
