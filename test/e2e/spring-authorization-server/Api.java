import static org.springframework.security.config.Customizer.withDefaults;

import java.util.Map;
import org.springframework.boot.SpringApplication;
import org.springframework.boot.SpringBootConfiguration;
import org.springframework.boot.autoconfigure.EnableAutoConfiguration;
import org.springframework.context.annotation.Bean;
import org.springframework.security.config.annotation.web.builders.HttpSecurity;
import org.springframework.security.core.annotation.AuthenticationPrincipal;
import org.springframework.security.oauth2.jwt.Jwt;
import org.springframework.security.web.SecurityFilterChain;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.RestController;

/** An API behind Spring Security's resource server with DPoP: it answers with the claims of the token. */
@SpringBootConfiguration
@EnableAutoConfiguration
@RestController
public class Api {
    public static void main(String[] args) {
        SpringApplication.run(Api.class, args);
    }

    @Bean
    SecurityFilterChain chain(HttpSecurity http) throws Exception {
        return http
            .authorizeHttpRequests(requests -> requests.anyRequest().authenticated())
            .oauth2ResourceServer(server -> server.jwt(withDefaults()).dPoP(withDefaults()))
            .build();
    }

    @GetMapping("/")
    Map<String, Object> claims(@AuthenticationPrincipal Jwt token) {
        return Map.of("claims", token.getClaims());
    }
}
