# What `sam build` calls, a target a function ("BuildMethod: makefile" in template.yaml). It needs cargo-lambda and Zig
# (`pip install cargo-lambda ziglang`), and rustup, by which cargo-lambda gets the target. Everything else is built by cargo.

# As under `Architectures` in template.yaml: arm64 or x86-64.
ARCHITECTURE ?= arm64
# What the functions read as turnlock.toml: `CONFIGURATION=staging.toml sam build` takes another one.
CONFIGURATION ?= turnlock.aws.toml

build-IngressTelegram: BINARY = ingress-telegram
build-IngressSlack: BINARY = ingress-slack
build-IngressWebhook: BINARY = ingress-webhook
build-IngressCron: BINARY = ingress-cron
build-Gateway: BINARY = gateway
build-Control: BINARY = control
build-Agent: BINARY = agent
build-Delivery: BINARY = delivery
build-Consolidate: BINARY = consolidate
build-Review: BINARY = review
build-DeadLetter: BINARY = dead-letter

# The folder agent/ is for instruction files; it goes along if it is there.
build-%:
	cargo lambda build --locked --profile dist --$(ARCHITECTURE) --package turnlock-$(BINARY) --bin $(BINARY)
	cp target/lambda/$(BINARY)/bootstrap "$(ARTIFACTS_DIR)/bootstrap"
	cp $(CONFIGURATION) "$(ARTIFACTS_DIR)/turnlock.toml"
	if [ -d agent ]; then cp -R agent "$(ARTIFACTS_DIR)/agent"; fi
