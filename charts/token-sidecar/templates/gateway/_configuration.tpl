{{/* Where the Secret of a credential is mounted. Arguments: the credential. */}}
{{- define "token-sidecar.gateway.credentialDirectory" -}}
/var/run/secrets/token-sidecar/{{ .name }}
{{- end -}}

{{/* The configuration file. */}}
{{- define "token-sidecar.gateway.configuration" -}}
{{- with .Values.gateway -}}
{{- $section := dict "callers" .callers "drainDelay" (printf "%ds" (int .drainDelaySeconds)) -}}
{{- $_ := set $section "listen" (printf "%s:15443" $.Values.bindAddress) -}}
{{- $_ := set $section "tls" (dict "certFile" "/etc/token-sidecar/tls/tls.crt" "keyFile" "/etc/token-sidecar/tls/tls.key") -}}
{{- if .serviceAccountTokens.enabled -}}
{{-   $_ := set $section "serviceAccountTokens" (dict "audience" .serviceAccountTokens.audience) -}}
{{- end -}}
{{- if or .clientCertificates.secret .clientCertificates.configMap -}}
{{-   $_ := set $section "clientCaFile" "/etc/token-sidecar/callers/ca.crt" -}}
{{- end -}}
{{- $credentials := list -}}
{{- range $index, $credential := .credentials -}}
{{-   if hasKey $credential "secret" -}}
{{-     if hasKey $credential "dir" -}}
{{-       fail (printf "gateway.credentials[%d].dir: leave it out beside secret, which is mounted where it is looked for" $index) -}}
{{-     end -}}
{{-     $credential = set (omit $credential "secret") "dir" (include "token-sidecar.gateway.credentialDirectory" $credential) -}}
{{-   else if not (hasKey $credential "dir") -}}
{{-     fail (printf "gateway.credentials[%d].secret: name the Secret, or set dir to a directory of gateway.volumeMounts" $index) -}}
{{-   end -}}
{{-   $credentials = append $credentials $credential -}}
{{- end -}}
{{- $file := dict "gateway" $section "credentials" $credentials "routes" .routes "accessLog" .accessLog -}}
{{- $_ := set $file "shutdown" (dict "drainTimeout" (printf "%ds" (int .drainSeconds))) -}}
{{- with .limits -}}
{{-   $_ := set $file "limits" . -}}
{{- end -}}
{{- toYaml $file -}}
{{- end -}}
{{- end -}}
