# A thin door to deploy/bootstrap.sh and the CMake presets; with CMake alone: cmake --preset release && cmake --build build/release
.PHONY: help demo test build bundle clean
help:
	@echo "make demo    install what is missing, build, and run a real search on this machine's CPU"
	@echo "make test    install what is missing, build, and run the tests"
	@echo "make build   the programs, under build/release/bin"
	@echo "make bundle  a relocatable folder with the programs and their libraries, under build/bundle"
	@echo "make clean   remove build/"
demo test build bundle:
	@deploy/bootstrap.sh $@
clean:
	rm -rf build
